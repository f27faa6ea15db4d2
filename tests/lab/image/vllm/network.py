"""The address that a process of vLLM believes to be its own."""

import os
import socket


def own_address():
    """VLLM_HOST_IP or, like vLLM, the source address that the kernel would use towards the world: on a host with two networks
    easily the wrong one."""
    configured = os.environ.get("VLLM_HOST_IP")
    if configured:
        return configured
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 53))  # sends nothing: UDP only asks the routing table
            return probe.getsockname()[0]
        except OSError:
            return "0.0.0.0"
