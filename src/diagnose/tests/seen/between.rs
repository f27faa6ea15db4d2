//! NCCL, Gloo and torch between nodes.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
    (
        Place::HeadLog,
        "spark:1:1 [0] misc/ibvwrap.cc:217 (wrap_ibv_reg_mr_iova2) NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "nccl-memlock",
        "NCCL on spark-1 may not pin memory for RDMA",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] misc/ibvwrap.cc:68 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory errno 12",
        "nccl-memlock",
        "NCCL on spark-1 may not pin memory for RDMA",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] misc/ibvwrap.cc:376 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:192.168.200.12, remote GID ::ffff:192.168.201.13",
        "rdma-wrong-port",
        "RDMA devices that are paired are not on one cable: rocep1s0f0:1",
    ),
    (
        Place::HeadLog,
        "misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
        "rdma-wrong-port",
        "RDMA devices that are paired are not on one cable",
    ),
    (
        Place::HeadLog,
        "NCCL WARN Call to ibv_modify_qp failed with 61 No data available, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 5, local GID ::, remote GID ::ffff:192.168.200.13",
        "rdma-gid",
        "NCCL on spark-1 uses a GID of its RDMA device that is empty or does not leave the link",
    ),
    (
        Place::HeadLog,
        "misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument",
        "rdma-gid",
        "NCCL on spark-1 uses a GID of its RDMA device that is empty or does not leave the link",
    ),
    (
        Place::HeadLog,
        "spark:33:61 [1] transport/net_ib/p2p.cc:854 NCCL WARN NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x7fccfc04e028, comm=0x7fccfc04e000 (recv), wr_id=0, qp_num=26257)",
        "rdma-fault",
        "an RDMA transfer of spark-1 failed",
    ),
    (
        Place::HeadLog,
        "spark:33:61 [1] transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got completion from peer 192.168.200.13<40554> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RECV_RDMA_WITH_IMM(129) vendor_err=129 localGid ::ffff:1.1.2.2 hca rocep1s0f0",
        "rdma-fault",
        "an RDMA transfer of spark-1 failed",
    ),
    (
        Place::HeadLog,
        "spark:33:61 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 192.168.200.13<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)",
        "rdma-fault",
        "an RDMA transfer of spark-1 failed",
    ),
    (
        Place::HeadLog,
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: enp1s0f1np1",
        "gloo-interface",
        "Gloo finds no address on the interface enp1s0f1np1 of spark-1",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        "nccl-interface",
        "NCCL finds no interface of the name that it was given on spark-1",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] transport/net_socket.cc:61 NCCL WARN NET/Socket : no interface found",
        "nccl-interface",
        "NCCL finds no interface of the name that it was given on spark-1",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] bootstrap.cc:119 NCCL WARN NET/Socket : No usable listening interface found",
        "nccl-interface",
        "NCCL finds no interface of the name that it was given on spark-1",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistStoreError: wait timeout after 1800000ms, keys: /default_pg/0//2//cpu//0/2",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistStoreError: Socket Timeout",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "[rank7]:[W410 21:36:52.176066491 socket.cpp:460] [c10d] waitForInput: poll for socket SocketImpl(fd=5, addr=[localhost]:39284, remote=[localhost]:47115) returned 0, likely a timeout",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "[rank7]:[W410 21:36:52.177160212 socket.cpp:485] [c10d] waitForInput: socket SocketImpl(fd=5, addr=[localhost]:39284, remote=[localhost]:47115) timed out after 300000ms",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        "rank-missing",
        "a rank never came: 1/2 joined",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=15) INFO 11-29 17:13:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.\n\
         (EngineCore pid=15) INFO 11-29 17:14:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.\n\
         (EngineCore pid=15) INFO 11-29 17:15:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.",
        "rank-silent",
        "a rank has not answered the others for minutes",
    ),
    (
        Place::WorkerLog,
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer [192.168.200.13]:38812",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::HeadLog,
        "[rank1]:[E805 01:44:10.2 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600351 milliseconds before timing out.",
        "rank-silent",
        "a rank has not answered the others for minutes",
    ),
    (
        Place::WorkerLog,
        "    self._semlock = _multiprocessing.SemLock._rebuild(*state)",
        "semaphore-deleted",
        "a semaphore of the engine on spark-1 was deleted: systemd does that when a user's last session ends",
    ),
    (
        Place::HeadLog,
        "RuntimeError: NCCL error: unhandled system error",
        "nccl-error",
        "NCCL failed on spark-1: unhandled system error",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, remote process exited or there was a network error, NCCL version 2.27.3",
        "nccl-error",
        "NCCL failed on spark-1: remote process exited or there was a network error",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5",
        "nccl-error",
        "NCCL failed on spark-1: unhandled cuda error",
    ),
    (
        Place::WorkerLog,
        "[W socket.cpp:1] recvValue failed on SocketImpl(fd=77): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::WorkerLog,
        "[W522 11:47:45.949247853 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=77, addr=[::ffff:127.0.0.1]:39732, remote=[::ffff:127.0.0.1]:29600): failed to recv, got 0 bytes",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::WorkerLog,
        "spark:77:91 [0] misc/socket.cc:59 NCCL WARN socketProgress: Connection closed by remote peer 192.168.200.13<40554>",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=84) ERROR 06-07 18:13:55 [multiproc.py:1] RayWorkerProc rank=[2] died unexpectedly, shutting down executor.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=143) ERROR 06-01 17:32:04 [multiproc_executor.py:283] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(APIServer pid=1) ERROR 09-05 01:15:59 [core_client.py:562] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker IP address: 192.168.200.13 Worker port: 10029 Worker PID: 127 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
        "nccl-over-tcp",
        "NCCL on spark-1 goes over TCP, not over InfiniBand or RoCE: it works, and slowly",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] NCCL INFO Failed to open libibverbs.so[.1]",
        "ibverbs-missing",
        "the image lacks libibverbs: NCCL cannot use InfiniBand or RoCE",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] NCCL INFO Count not open libibverbs.so.1",
        "ibverbs-missing",
        "the image lacks libibverbs: NCCL cannot use InfiniBand or RoCE",
    ),
    (
        Place::HeadLog,
        "Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0,roceP2p1s0f0' to 'rocep1s0f1,roceP2p1s0f1'",
        "environment-overwritten",
        "vLLM gave a worker the head's NCCL_IB_HCA",
    ),
    (
        Place::HeadLog,
        "(APIServer pid=1) INFO:     127.0.0.1:40052 - \"GET /v1/models HTTP/1.1\" 401 Unauthorized",
        "api-key-wanted",
        "the server wants an API key and was asked without it",
    ),
];
