//! Docker, and the driver of the GPU.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
    (
        Place::Output,
        "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
        "docker-not-allowed",
        "the login on spark-1 may not use Docker",
    ),
    (
        Place::Output,
        "Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "docker-not-allowed",
        "the login on spark-1 may not use Docker",
    ),
    (
        Place::Probe,
        "the login may not use Docker: permission denied on its socket",
        "docker-not-allowed",
        "the login on spark-1 may not use Docker",
    ),
    (
        Place::Output,
        "sudo: a password is required",
        "sudo-wants-password",
        "sudo wants a password on spark-1",
    ),
    (
        Place::Output,
        "sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper",
        "sudo-wants-password",
        "sudo wants a password on spark-1",
    ),
    (
        Place::Output,
        "sudo: sorry, you are not allowed to preserve the environment",
        "sudo-drops-secret",
        "sudo on spark-1 does not hand on the variable of the secret",
    ),
    (
        Place::Output,
        "zsh:1: command not found: docker",
        "docker-missing",
        "there is no docker program on spark-1",
    ),
    (
        Place::Output,
        "sh: 1: docker: not found",
        "docker-missing",
        "there is no docker program on spark-1",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
        "nvidia-runtime-missing",
        "Docker on spark-1 cannot give a container the GPU: NVIDIA's container toolkit is missing",
    ),
    (
        Place::Output,
        "Error response from daemon: could not select device driver \"nvidia\" with capabilities: [[gpu]]",
        "nvidia-runtime-missing",
        "Docker on spark-1 cannot give a container the GPU: NVIDIA's container toolkit is missing",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices: nvidia.com/gpu=all",
        "cdi-stale",
        "the list of devices (CDI) on spark-1 is stale after a driver update",
    ),
    (
        Place::Output,
        "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown.",
        "driver-replaced",
        "the NVIDIA driver of spark-1 was replaced while the old one is loaded",
    ),
    (
        Place::Probe,
        "the NVIDIA driver was replaced while the old one is loaded: driver/library version mismatch",
        "driver-replaced",
        "the NVIDIA driver of spark-1 was replaced while the old one is loaded",
    ),
    (
        Place::Output,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
        "driver-not-loaded",
        "the NVIDIA driver of spark-1 is not loaded",
    ),
    (
        Place::Probe,
        "nvidia-smi does not answer",
        "driver-hangs",
        "nvidia-smi on spark-1 does not answer: the NVIDIA driver hangs there, and nothing is known of the GPUs",
    ),
    (
        Place::Probe,
        "nvidia-smi: Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU",
        "gpu-lost",
        "a GPU of spark-1 has dropped off its bus",
    ),
    (
        Place::Output,
        "Error response from daemon: pull access denied for x, repository does not exist or may require 'docker login'",
        "pull-denied",
        "the registry does not give out hellohal2064/vllm-qwen3.5-gb10",
    ),
    (
        Place::Output,
        "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
        "disk-full",
        "a disk of spark-1 is full",
    ),
    (
        Place::HeadLog,
        "Error response from daemon: Get \"https://registry-1.docker.io/v2/\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-03-13T10:00:00Z is before 2026-05-23T14:30:00Z",
        "clock-off",
        "the clock of spark-1 is behind: it finds a certificate not yet valid",
    ),
    (
        Place::HeadLog,
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid (_ssl.c:1000)",
        "clock-off",
        "the clock of spark-1 is behind: it finds a certificate not yet valid",
    ),
];
