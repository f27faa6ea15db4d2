//! What Ray's dashboard and command line say to other questions: none of it is taken for the membership or for what waits.

use bringup::domain::command::Exit;
use bringup::domain::event::{Facts, ProbeId, Subject};
use bringup::probe::{self, dashboard};

use crate::cases::output;

/// The state API's frame around a list.
fn listed(entries: &str) -> String {
    let all: Vec<serde_json::Value> = serde_json::from_str(&format!("[{entries}]")).unwrap();
    let count = all.len();
    format!(
        r#"{{"result": true, "msg": "", "data": {{"result": {{"total": {count}, "num_after_truncation": {count}, "num_filtered": {count}, "result": [{entries}], "partial_failure_warning": "", "warnings": null}}}}}}"#
    )
}

const NODE: &str = r#"{"node_id": "4ce5", "node_ip": "10.77.0.2", "is_head_node": false, "state": "ALIVE", "resources_total": {"GPU": 1.0}}"#;
const ACTOR: &str = r#"{"actor_id": "0dc9", "class_name": "RayWorkerProc", "state": "ALIVE", "job_id": "01000000", "name": "vllm_Worker_TP1", "node_id": "4ce5", "pid": 122, "ray_namespace": "4fc5"}"#;
const WORKER: &str = r#"{"worker_id": "0100", "is_alive": true, "worker_type": "DRIVER", "exit_type": null, "node_id": "f438", "ip": "10.77.0.1", "pid": 470}"#;
const GROUP: &str = r#"{"placement_group_id": "e396", "name": "", "creator_job_id": "01000000", "state": "CREATED", "bundles": null, "stats": null}"#;

#[test]
fn actors_and_workers_are_no_nodes_and_no_groups() {
    for entry in [ACTOR, WORKER] {
        let body = listed(entry);
        assert_eq!(
            dashboard::parse(body.as_bytes()).unwrap_err(),
            "Ray's dashboard: no node among the entries of the answer",
            "{entry}"
        );
        assert_eq!(
            dashboard::groups(body.as_bytes()).unwrap_err(),
            "Ray's dashboard: no placement group among the entries of the answer",
            "{entry}"
        );
    }
    assert!(dashboard::parse(listed(GROUP).as_bytes()).is_err());
    assert!(dashboard::groups(listed(NODE).as_bytes()).is_err());
    // What was asked for, beside something else: what can be read counts.
    let nodes = dashboard::parse(listed(&format!("{NODE}, {ACTOR}")).as_bytes())
        .unwrap()
        .nodes;
    assert_eq!(
        (nodes.len(), nodes[0].address.as_str(), nodes[0].gpus),
        (1, "10.77.0.2", 1.0)
    );
    // A cluster without groups waits for nothing, and so does one whose group is there.
    assert_eq!(dashboard::groups(listed("").as_bytes()), Ok(Vec::new()));
    assert_eq!(dashboard::groups(listed(GROUP).as_bytes()), Ok(Vec::new()));
}

#[test]
fn answers_of_other_addresses_of_the_dashboard_are_refused_in_words() {
    let answers = [
        // /api/jobs/
        r#"[{"type": "DRIVER", "job_id": "01000000", "driver_info": {"id": "01000000", "node_ip_address": "10.77.0.1", "pid": "470"}, "status": "RUNNING"}]"#,
        // /nodes?view=summary, which has another form for the same nodes
        r#"{"result": true, "msg": "Node summary fetched.", "data": {"summary": [{"hostname": "vm", "ip": "10.77.0.1", "raylet": {"nodeId": "af92", "state": "ALIVE"}}], "nodeLogicalResources": {"af92": "0.0/1.0 GPU"}}}"#,
        // /nodes?view=hostNameList
        r#"{"result": true, "msg": "Node hostname list fetched.", "data": {"hostNameList": ["vm"]}}"#,
        // /logical/actors
        r#"{"result": true, "msg": "All actors fetched.", "data": {"actors": {"36a2": {"actorId": "36a2", "state": "ALIVE", "address": {"nodeId": "f438", "ipAddress": "10.77.0.1"}}}}}"#,
        // /api/v0/logs
        r#"{"result": true, "msg": "", "data": {"result": {"internal": ["dashboard_JobHead.err"], "worker_out": ["worker-0f21-01000000-117.out"]}}}"#,
        // /api/version
        r#"{"version": "4", "ray_version": "2.60.0", "ray_commit": "b7f4", "session_name": "session_2026-11-29"}"#,
        // /api/cluster_status
        r#"{"result": true, "msg": "Got cluster status.", "data": {"autoscalingStatus": null, "autoscalingError": null, "clusterStatus": {}}}"#,
        // `ray list nodes --format json` and its kin: a bare list
        r#"[{"node_id": "8b45", "node_ip": "10.77.0.2", "is_head_node": false, "state": "ALIVE", "resources_total": {"memory": "21.649 GiB", "CPU": 2.0}}]"#,
    ];
    for answer in answers {
        let bytes = answer.as_bytes();
        assert_eq!(
            dashboard::parse(bytes).unwrap_err(),
            "Ray's dashboard: no list of nodes in the answer",
            "{answer}"
        );
        assert_eq!(
            dashboard::groups(bytes).unwrap_err(),
            "Ray's dashboard: no list of placement groups in the answer",
            "{answer}"
        );
        let named = dashboard::version(bytes);
        assert_eq!(named.is_some(), answer.contains("ray_version"), "{answer}");
    }
    // /api/gcs_healthz says one word.
    let why = dashboard::parse(b"success").unwrap_err();
    assert!(why.starts_with("Ray's dashboard: no JSON:"), "{why}");
}

#[test]
fn a_table_of_nodes_is_no_ray_status() {
    let table = "\n======== List: 2026-03-23 16:19:44.798192 ========\nStats:\n------------------------------\nTotal: 2\n\nTable:\n------------------------------\n    NODE_ID  NODE_IP        IS_HEAD_NODE    STATE    STATE_MESSAGE    NODE_NAME      RESOURCES_TOTAL    LABELS\n 0  55f1     192.168.50.16  False           ALIVE                     192.168.50.16  CPU: 14.0          ray.io/node-id: 55f1\n                                                                                     TPU: 1.0\n                                                                                     memory: 83.956 GiB\n 1  8b45     192.168.50.17  False           DEAD     Unexpected termination: health check failed due to missing too many heartbeats  192.168.50.17  CPU: 2.0\n";
    for probe in [ProbeId::RayStatus, ProbeId::Ray] {
        let (facts, _) = probe::parse(probe, &output(table.into(), Vec::new(), Exit::Code(0)));
        assert!(
            matches!(
                facts.as_slice(),
                [Facts::Absent {
                    what: Subject::RayStatus | Subject::Ray,
                    ..
                }]
            ),
            "{facts:?}"
        );
    }
}
