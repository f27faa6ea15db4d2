//! Nodes and containers: names and ports that are taken.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
    (
        Place::Output,
        "docker: Error response from daemon: Conflict. The container name \"/vllm-qwen35\" is already in use by container \"8fcb2a9a1234567890\". You have to remove (or rename) that container to be able to reuse that name.",
        "name-taken",
        "a container of spark-1 has the name vllm-qwen35 already: 8fcb2a9a1234",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 29500",
    ),
    (
        Place::HeadLog,
        "OSError: [Errno 98] Address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken",
    ),
    (
        Place::HeadLog,
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 8000",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: driver failed programming external connectivity on endpoint x: Bind for 0.0.0.0:8000 failed: port is already allocated.",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 8000",
    ),
    // Docker since 28, where something else than a container has the port.
    (
        Place::Output,
        "docker: Error response from daemon: failed to set up container networking: driver failed programming external connectivity on endpoint vllm-qwen35 (77cf): failed to bind host port for 0.0.0.0:8000:172.17.0.2:8000/tcp: address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 8000",
    ),
    (
        Place::Output,
        "ERROR: failed to bind host port for [::]:11434: address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 11434",
    ),
];
