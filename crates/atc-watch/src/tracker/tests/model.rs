//! Random interleavings of a cluster, its watch and owners that run: no change is lost, and nothing runs for ever.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const OBJECTS: usize = 4;
const OWNERS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize),
    Delete(usize),
    Deliver(usize),
    ListBegins,
    ListEnds,
    Begin(usize),
    Interest(usize, usize),
    Read(usize, usize),
    Apply(usize, usize),
    Commit(usize),
    Fail(usize, bool),
    Refresh(usize),
    Forget(usize),
    Restart(usize),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..OBJECTS;
    let owner = 0..OWNERS.len();
    prop_oneof![
        4 => object.clone().prop_map(Step::Write),
        2 => object.clone().prop_map(Step::Delete),
        4 => (1..4usize).prop_map(Step::Deliver),
        1 => Just(Step::ListBegins),
        2 => Just(Step::ListEnds),
        3 => owner.clone().prop_map(Step::Begin),
        3 => (owner.clone(), object.clone()).prop_map(|(a, b)| Step::Interest(a, b)),
        6 => (owner.clone(), object.clone()).prop_map(|(a, b)| Step::Read(a, b)),
        3 => (owner.clone(), object).prop_map(|(a, b)| Step::Apply(a, b)),
        4 => owner.clone().prop_map(Step::Commit),
        2 => (owner.clone(), any::<bool>()).prop_map(|(a, b)| Step::Fail(a, b)),
        2 => owner.clone().prop_map(Step::Refresh),
        1 => owner.clone().prop_map(Step::Forget),
        2 => owner.prop_map(Step::Restart),
        1 => Just(Step::Sweep),
    ]
}

fn name(object: usize) -> String {
    format!("o{object}")
}

/// uid and version of what is there.
type State = Option<(u64, u64)>;

#[derive(Clone, Debug)]
enum Event {
    Changed(usize, u64, u64),
    Deleted(usize, u64, u64),
}

#[derive(Default)]
struct Run {
    interest: BTreeSet<usize>,
    reads: BTreeMap<usize, State>,
    applied: BTreeMap<usize, State>,
}

#[derive(Default)]
struct Owner {
    run: Option<Run>,
    /// What the last stored run read (or applied, if it did not read).
    stored: BTreeMap<usize, State>,
    woken: bool,
    failed: bool,
}

/// A list whose first page has come: its number, its version, and the snapshot.
struct Listing(u64, u64, Vec<State>);

struct World {
    tracker: Tracker<&'static str>,
    version: u64,
    objects: Vec<State>,
    /// What happened since the watch began, and how much of it was shown.
    events: Vec<Event>,
    shown: usize,
    watching: bool,
    listing: Option<Listing>,
    owners: Vec<Owner>,
}

fn seen(object: usize, state: State) -> Seen {
    state.map_or(Seen::Absent, |(uid, version)| {
        present(&name(object), &uid.to_string(), version)
    })
}

impl World {
    fn new() -> Self {
        Self {
            tracker: Tracker::new(),
            version: 100,
            objects: vec![Some((1, 1)), None, Some((2, 2)), None],
            events: Vec::new(),
            shown: 0,
            watching: false,
            listing: None,
            owners: OWNERS.iter().map(|_| Owner::default()).collect(),
        }
    }

    fn take(&mut self, wakes: Vec<Wake<&'static str>>) {
        for wake in wakes {
            let index = OWNERS
                .iter()
                .position(|owner| *owner == wake.owner)
                .unwrap();
            assert!(self.owners[index].run.is_none(), "woken in a run");
            self.owners[index].woken = true;
        }
    }

    fn write(&mut self, object: usize) -> State {
        self.version += 1;
        let uid = self.objects[object].map_or(self.version, |(uid, _)| uid);
        self.objects[object] = Some((uid, self.version));
        self.events.push(Event::Changed(object, uid, self.version));
        self.objects[object]
    }

    fn delete(&mut self, object: usize) {
        if let Some((uid, _)) = self.objects[object].take() {
            self.version += 1;
            self.events.push(Event::Deleted(object, uid, self.version));
        }
    }

    fn deliver(&mut self, count: usize) {
        if !self.watching || self.listing.is_some() {
            return;
        }
        for _ in 0..count {
            let Some(event) = self.events.get(self.shown).cloned() else {
                return;
            };
            self.shown += 1;
            let wakes = match event {
                Event::Changed(o, uid, version) => self
                    .tracker
                    .changed(&kind(), &super::object(&name(o), &uid.to_string(), version)),
                Event::Deleted(o, uid, version) => self
                    .tracker
                    .deleted(&kind(), &super::object(&name(o), &uid.to_string(), version)),
            };
            self.take(wakes);
        }
    }

    fn list_page(&mut self, listing: u64, snapshot: &[State], page: std::ops::Range<usize>) {
        for index in page {
            if let Some((uid, version)) = snapshot[index] {
                let object = super::object(&name(index), &uid.to_string(), version);
                let wakes = self.tracker.listed(&kind(), listing, &object);
                self.take(wakes);
            }
        }
    }

    /// Everything not shown until now is never shown: as after a 410.
    fn list_begins(&mut self) {
        // Nobody watches a kind that nobody depends on.
        if self.tracker.resource(&kind()).is_none() {
            return;
        }
        let listing = self.tracker.list_begins(&kind(), &self.version.to_string());
        let snapshot = self.objects.clone();
        self.shown = self.events.len();
        self.list_page(listing, &snapshot, 0..OBJECTS / 2);
        self.listing = Some(Listing(listing, self.version, snapshot));
    }

    fn list_ends(&mut self) {
        if let Some(Listing(listing, version, snapshot)) = self.listing.take() {
            self.list_page(listing, &snapshot, OBJECTS / 2..OBJECTS);
            let wakes = self
                .tracker
                .list_ends(&kind(), listing, &version.to_string());
            self.take(wakes);
            self.watching = true;
        }
    }

    fn begin(&mut self, owner: usize) {
        self.tracker.begin(&OWNERS[owner]);
        let owner = &mut self.owners[owner];
        owner.woken = false;
        owner.run = Some(Run::default());
    }

    fn interest(&mut self, owner: usize, object: usize) {
        // Too late for what the run has read or applied already.
        if let Some(run) = &mut self.owners[owner].run
            && !run.reads.contains_key(&object)
            && !run.applied.contains_key(&object)
        {
            run.interest.insert(object);
            self.tracker
                .interest(&OWNERS[owner], &target(&name(object)));
        }
    }

    /// Whether or not interest was shown before; an earlier read of the same run stands.
    fn read(&mut self, owner: usize, object: usize) {
        if let Some(run) = &mut self.owners[owner].run {
            run.reads.entry(object).or_insert(self.objects[object]);
        }
    }

    fn apply(&mut self, owner: usize, object: usize) {
        if self.owners[owner].run.is_some() {
            let state = self.write(object);
            if let Some(run) = &mut self.owners[owner].run {
                run.applied.insert(object, state);
            }
        }
    }

    fn dependencies(run: &Run) -> Vec<Dependency> {
        let applied = run
            .applied
            .iter()
            .map(|(object, state)| child(&name(*object), seen(*object, *state)));
        let reads = run
            .reads
            .iter()
            .map(|(object, state)| input(&name(*object), seen(*object, *state)));
        applied.chain(reads).collect()
    }

    fn commit(&mut self, owner: usize) {
        if let Some(run) = self.owners[owner].run.take() {
            let wakes = self
                .tracker
                .commit(&OWNERS[owner], Self::dependencies(&run));
            let state = &mut self.owners[owner];
            state.failed = false;
            state.stored = run.applied;
            state.stored.extend(run.reads);
            self.take(wakes);
        }
    }

    fn fail(&mut self, owner: usize, with_reads: bool) {
        if let Some(run) = self.owners[owner].run.take() {
            let reads = if with_reads {
                Self::dependencies(&run)
            } else {
                Vec::new()
            };
            let wakes = self.tracker.fail(&OWNERS[owner], reads);
            let state = &mut self.owners[owner];
            state.failed = true;
            let read = run
                .reads
                .keys()
                .chain(run.applied.keys())
                .filter(|_| with_reads);
            for object in run.interest.iter().chain(read) {
                state.stored.entry(*object).or_insert(None);
            }
            self.take(wakes);
        }
    }

    fn refresh(&mut self, owner: usize) {
        if self.owners[owner].run.is_some() {
            return;
        }
        let objects: Vec<usize> = self.owners[owner].stored.keys().copied().collect();
        let reads: Vec<_> = objects
            .iter()
            .map(|o| (reference(&name(*o)), seen(*o, self.objects[*o])))
            .collect();
        let wakes = self.tracker.refresh(&OWNERS[owner], reads);
        for object in objects {
            self.owners[owner]
                .stored
                .insert(object, self.objects[object]);
        }
        self.take(wakes);
    }

    /// A whole run that reads everything the owner has depended on so far.
    fn run(&mut self, owner: usize) {
        let objects: Vec<usize> = self.owners[owner].stored.keys().copied().collect();
        self.begin(owner);
        for object in objects {
            self.interest(owner, object);
            self.read(owner, object);
        }
        self.commit(owner);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(object) => drop(self.write(object)),
            Step::Delete(object) => self.delete(object),
            Step::Deliver(count) => self.deliver(count),
            Step::ListBegins => self.list_begins(),
            Step::ListEnds => self.list_ends(),
            Step::Begin(owner) => self.begin(owner),
            Step::Interest(owner, object) => self.interest(owner, object),
            Step::Read(owner, object) => self.read(owner, object),
            Step::Apply(owner, object) => self.apply(owner, object),
            Step::Commit(owner) => self.commit(owner),
            Step::Fail(owner, with_reads) => self.fail(owner, with_reads),
            Step::Refresh(owner) => self.refresh(owner),
            Step::Forget(owner) => {
                self.tracker.forget(&OWNERS[owner]);
                self.owners[owner] = Owner::default();
            }
            Step::Sweep => {
                if self.tracker.drop_idle(&kind()) {
                    self.watching = false;
                    self.listing = None;
                }
            }
            Step::Restart(owner) => {
                if self.owners[owner].run.is_none() {
                    self.run(owner);
                }
            }
        }
    }

    fn show_all(&mut self) {
        if self.listing.is_none() && !self.watching {
            self.list_begins();
        }
        self.list_ends();
        self.deliver(usize::MAX);
    }

    /// Lets everything come to rest. Returns how many runs that took.
    fn settle(&mut self) -> usize {
        for owner in 0..OWNERS.len() {
            self.fail(owner, false);
            if self.owners[owner].failed {
                self.owners[owner].woken = true;
            }
        }
        let mut runs = 0;
        loop {
            self.show_all();
            let Some(owner) = self.owners.iter().position(|owner| owner.woken) else {
                return runs;
            };
            self.run(owner);
            runs += 1;
            assert!(runs < 20, "it does not come to rest");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_change_is_lost_and_all_comes_to_rest(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
        for owner in &world.owners {
            for (object, state) in &owner.stored {
                prop_assert_eq!(*state, world.objects[*object], "object {}", object);
            }
        }
        // What is at rest stays so; and a change of anything that somebody depends on still reaches each of them.
        prop_assert_eq!(world.settle(), 0);
        for object in 0..OBJECTS {
            for change in [World::write as fn(&mut World, usize) -> State, |world, object| { world.delete(object); None }] {
                change(&mut world, object);
                world.deliver(usize::MAX);
                for owner in &mut world.owners {
                    prop_assert!(!world.watching || owner.woken == owner.stored.contains_key(&object));
                    owner.woken = false;
                }
            }
        }
    }

    #[test]
    fn a_failed_run_is_woken_by_any_later_change(steps in prop::collection::vec(step(), 0..40), object in 0..OBJECTS) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
        world.begin(0);
        world.interest(0, object);
        world.fail(0, false);
        world.show_all();
        world.owners[0].woken = false;
        world.write(object);
        world.deliver(usize::MAX);
        prop_assert!(world.owners[0].woken);
    }

    #[test]
    fn what_lags_wakes_nobody(writes in prop::collection::vec((0..OBJECTS, any::<bool>()), 0..30), by in 0..OWNERS.len()) {
        let mut world = World::new();
        for owner in 0..OWNERS.len() {
            world.begin(owner);
            for object in 0..OBJECTS {
                world.interest(owner, object);
            }
            world.commit(owner);
        }
        // All that happens is not shown until everybody has read the outcome.
        for owner in 0..OWNERS.len() {
            for object in 0..OBJECTS {
                world.owners[owner].stored.insert(object, None);
            }
        }
        world.show_all();
        world.settle();
        for (object, deleted) in writes {
            if deleted { world.delete(object) } else { world.write(object); }
        }
        for object in 0..OBJECTS {
            world.write(object);
        }
        for owner in 0..OWNERS.len() {
            world.run(owner);
        }
        prop_assert!(!world.owners[by].woken);
        world.deliver(usize::MAX);
        prop_assert!(world.owners.iter().all(|owner| !owner.woken));
    }
}
