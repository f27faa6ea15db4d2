//! Addresses that Ray and the engine took.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
    (
        Place::HeadLog,
        "2026-11-29 17:19:11,161\tINFO scripts.py:1101 -- Local node IP: 10.1.230.180",
        "ray-took-external-address",
        "Ray on spark-1 took the address 10.1.230.180, which is no node's fabric address",
    ),
    (
        Place::HeadLog,
        "2026-11-29 18:58:10,882\tINFO scripts.py:1043 -- [37mLocal node IP[39m: [1m127.0.0.1[22m",
        "ray-took-external-address",
        "Ray on spark-1 took the address 127.0.0.1, which is no node's fabric address",
    ),
    (
        Place::HeadLog,
        "INFO 04-01 02:46:00 ray_utils.py:214] Waiting for creating a placement group of specs for 10 seconds. specs=[{'node:10.163.194.101': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status` to see if you have enough resources",
        "vllm-host-ip-differs",
        "vLLM on spark-1 asks Ray for a GPU at 10.163.194.101, where Ray has no node",
    ),
    (
        Place::HeadLog,
        "Error: No available node types can fulfill resource request {'GPU': 1.0, 'node:192.168.50.192': 0.001}. Add suitable node types to this cluster",
        "vllm-host-ip-differs",
        "vLLM on spark-1 asks Ray for a GPU at 192.168.50.192, where Ray has no node",
    ),
    (
        Place::HeadLog,
        "RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['a', 'b'] and 1 unique IP addresses {'192.168.200.12'}.",
        "same-address-twice",
        "two nodes of the Ray cluster have one address",
    ),
    (
        Place::WorkerLog,
        "ValueError: Malformed host:",
        "ray-address-empty",
        "Ray on spark-1 was started with an empty address",
    ),
    (
        Place::WorkerLog,
        "[2025-03-01 10:00:00,000 W 1 1] gcs_rpc_client.h:179: Failed to connect to GCS at address :6379 within 5 seconds.",
        "ray-address-empty",
        "Ray on spark-1 was started with an empty address",
    ),
];
