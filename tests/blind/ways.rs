//! A message to ourselves proves the way that it took: that of its own place, by the address that canaries were given.

use super::{
    Service, place,
    postgres::Postgres,
    send, until_sighted, verdict,
    world::{Shape, World, free_address, process::signal, until},
};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_public_address_does_not_prove_the_old_one() {
    let service = Service::start();
    let (_world, place) = place("4s", service.address).await;
    let monitor = place.serve();
    until_sighted(&place);
    let id = send(&place);
    let old = service.callback();
    // The service has an address that leads nowhere from now on; messages to ourselves arrive by another one.
    let text = fs::read_to_string(&place.config).expect("the configuration is there");
    let public = format!("public_url: http://{}/receipts", place.receipts);
    assert!(text.contains(&public) && old.starts_with("/receipts/"), "{old}");
    fs::write(&place.config, text.replace(&public, &format!("{public}/moved"))).expect("it can be written");
    signal(monitor.id(), "HUP");
    let next = until_moved(&place, &service);
    assert_eq!(verdict(&place, &id), "undetermined");
    // What was sent by the new address is judged by it, once it is proven all through.
    let last = send(&place);
    assert_eq!(verdict(&place, &last), "overdue", "after {next}");
}

/// Sends until a canary is given the new address; its id.
fn until_moved(place: &super::world::Place, service: &Service) -> String {
    let mut id = String::new();
    until("a canary with the new address", 60, || {
        id = send(place);
        let path = service.callback();
        if path.starts_with("/receipts/moved/") { Ok(()) } else { Err(path) }
    });
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ingress_of_one_place_does_not_prove_that_of_another() {
    let server = Postgres::start();
    let shape = Shape {
        store_url: Some(server.fresh_database().await),
        schedule: "{ every: 24h }".into(),
        deadline: "3s",
        with_ledger: false,
        ..Shape::default()
    };
    let service = Service::start();
    let world = World::new(shape).await;
    let (here, there) = (world.configure("here"), world.configure("there"));
    let real = world.simulator.addresses().acceptance.to_string();
    for (place, location, dead) in [(&here, "here", None), (&there, "there", Some(free_address()))] {
        let text = fs::read_to_string(&place.config).expect("the configuration is there");
        let text = text.replace(&real, &service.address.to_string());
        let text = text.replace("location: here", &format!("location: {location}\nlocations: [here, there]"));
        let public = format!("public_url: http://{}/receipts", place.receipts);
        assert!(text.contains(&public));
        let text = dead.map_or(text.clone(), |dead| {
            text.replace(&public, &format!("public_url: http://{dead}/receipts"))
        });
        fs::write(&place.config, text).expect("it can be written");
    }
    let _monitors = (here.serve(), there.serve());
    until_sighted(&here);
    until("the other one to be ready", 60, || match there.probe("/ready") {
        Some(200) => Ok(()),
        other => Err(format!("{other:?}; log:\n{}", there.log())),
    });
    let (seen, blind) = (send(&here), send(&there));
    assert_eq!(verdict(&there, &blind), "undetermined");
    assert_eq!(verdict(&here, &seen), "overdue", "the silence is the service's");
}
