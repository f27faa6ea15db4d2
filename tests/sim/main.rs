//! The demo cluster from outside: through its jump host, with a plain SSH client and with the console's own rooms.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::panic, reason = "a test that cannot go on fails")]

mod access;
mod client;
mod console;
mod operator;
mod plans;
mod serving;

use bringup::sim::{Cluster, Options};

/// Fabric address of the head.
pub const HEAD: &str = "192.168.200.12";
/// Fabric address of the worker.
pub const WORKER: &str = "192.168.200.13";

/// `docker run` of a node, up to what its role adds.
pub const RUN: &str = "run -d --name v --network host --gpus all --device /dev/infiniband -e NCCL_DEBUG=INFO -e NCCL_IB_HCA=rocep1s0f1 --entrypoint ray hellohal2064/vllm-qwen3.5-gb10 start --block";
/// `docker exec` of the server.
pub const SERVE: &str = "exec -d -e BRINGUP_SERVE=abc -e RAY_ADDRESS=192.168.200.12:6379 v /bin/sh -c 'exec vllm serve org/model --port 8000 --tensor-parallel-size 2 >>/proc/1/fd/1 2>&1'";

/// Two nodes at a pace.
pub async fn cluster(speed: f64) -> Cluster {
    let options = Options {
        speed,
        ..Options::default()
    };
    Cluster::start(options).await.unwrap()
}
