//! A control plane for tests whose atc is killed, cut off or started without rights: one for all of them, one test at
//! a time.

use std::sync::OnceLock;

use atc_tests::{AirwayBuilder, Atc, Cluster, eventually};
use controlplane::{Component, ControlPlane, Options};
use tokio::sync::{Mutex, MutexGuard};

use crate::world::{AIRWAYS, HOOKS, Kind, LIMIT, World, puppet};

/// The right to start an atc there. Given back at the end of the test.
pub(crate) struct Solo {
    pub(crate) world: World,
    _turn: MutexGuard<'static, ()>,
}

impl Solo {
    /// Waits for its turn.
    pub(crate) async fn begin() -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let plane = tokio::task::spawn_blocking(plane).await.unwrap();
        let world = World::on(Cluster::on(plane).await).await;
        Self { world, _turn: turn }
    }

    /// Starts an atc.
    pub(crate) async fn atc(&self, environment: &[(&str, &str)]) -> Atc<'static> {
        let atc = Atc::start(plane(), &self.world.cluster.api, "solo", environment).await;
        atc.unwrap()
    }

    /// Starts one and waits for nothing.
    pub(crate) fn launch(&self, environment: &[(&str, &str)]) -> Atc<'static> {
        self.launch_as("solo", environment)
    }

    /// The same beside it: with a port, a log and caches of its own.
    pub(crate) fn launch_as(&self, name: &str, environment: &[(&str, &str)]) -> Atc<'static> {
        Atc::launch(plane(), &self.world.cluster.api, name, environment).unwrap()
    }

    /// A kind in dynamic mode that is not reviewed at admission: instances can be created while no atc runs.
    pub(crate) async fn kind(&self) -> Kind<'_> {
        let airway = AirwayBuilder::new("Solo", &puppet())
            .dynamic()
            .access(&["*"])
            .set("skipAdmissionWebhook", true);
        let path = format!("{AIRWAYS}/{}", airway.name());
        if self.world.get(&path).await.unwrap().is_none() {
            return self.world.kind(airway).await;
        }
        // Made with an earlier atc, whose port was another one.
        let (hook, service) = (
            format!("{HOOKS}/{}", airway.name()),
            "/api/v1/namespaces/atc/services/solo",
        );
        eventually(LIMIT, "its webhook asks the atc of now", || async {
            let hook = self.world.get(&hook).await?.unwrap_or_default();
            let service = self.world.get(service).await?.unwrap_or_default();
            let port = &hook["webhooks"][0]["clientConfig"]["service"]["port"];
            Ok((*port == service["spec"]["ports"][0]["port"]).then_some(()))
        })
        .await;
        Kind::of(&self.world, airway)
    }
}

/// etcd, kube-apiserver and the garbage collector.
pub(crate) fn plane() -> &'static ControlPlane {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        plane.start_component(Component::ControllerManager).unwrap();
        plane
    })
}
