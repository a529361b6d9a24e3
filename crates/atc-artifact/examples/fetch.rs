//! Fetches a program and says what it got: `cargo run -p atc-artifact --example fetch -- LOCATION [SHA256]`.

use std::error::Error;
use std::io::Write as _;

use atc_artifact::{FetchOptions, Fetcher, Location};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let location: Location = args
        .next()
        .ok_or("usage: fetch LOCATION [SHA256]")?
        .parse()?;
    let checksum = args.next();
    let fetcher = Fetcher::new(FetchOptions::default());
    let artifact = fetcher.fetch(&location, checksum.as_deref()).await?;
    writeln!(
        std::io::stdout(),
        "{location}: {} bytes\nsha256 {}\nsha1 {}",
        artifact.bytes.len(),
        artifact.sha256,
        artifact.sha1
    )?;
    Ok(())
}
