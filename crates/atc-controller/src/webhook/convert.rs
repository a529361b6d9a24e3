//! The conversion of instances between the versions of their kind, by the Airway's converter.
//!
//! A list fails as a whole, and with it every watch and every removal that needs one. So what can't be converted does not
//! fail the review: it is handed on as it is, with the reason in an annotation. Nobody can store it so (see
//! [`super::instance`]), the controller evaluates nothing by it, and it can be removed.

use std::time::Duration;

use atc_api::Airway;
use atc_engine::LoadedFlight;
use atc_engine::convert::{Conversion, ConvertError};
use atc_engine::flight::Bounds;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::control::Control;
use crate::modules::load_converter;

/// One run of a converter: 10 s, as in the existing tool.
const RUN: Duration = Duration::from_secs(10);
/// All that is done for one review. The API server gives up after 30 s, with words of its own.
const REVIEW: Duration = Duration::from_secs(25);
/// Objects that are converted at once where each is tried alone.
const AT_ONCE: usize = 4;

/// Answers a review. The error is for a caller who sent none.
pub(crate) async fn answer(
    control: &Control,
    airway: &str,
    review: &Value,
) -> Result<Value, ConvertError> {
    let conversion = Conversion::read(review)?;
    let Some(kind) = control.kinds.get(airway) else {
        return Ok(conversion.failed(&format!(
            "Airway \"{airway}\" is not known yet; try again in a moment"
        )));
    };
    let parsed: Airway = match serde_json::from_value((*kind.airway()).clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            return Ok(conversion.failed(&format!("Airway \"{airway}\" can't be read: {error}")));
        }
    };
    let converting = convert(control, &parsed, &conversion);
    let Ok(results) = timeout_at(Instant::now() + REVIEW, converting).await else {
        return Ok(conversion.failed(&format!(
            "{} objects were not converted to {} within {} s; ask for fewer at a time",
            conversion.objects.len(),
            conversion.desired,
            REVIEW.as_secs()
        )));
    };
    let pairs = results.into_iter().zip(&conversion.objects);
    let mut failed: usize = 0;
    let converted: Vec<Value> = pairs
        .map(|(result, object)| {
            result.unwrap_or_else(|error| {
                failed += 1;
                conversion.marked(object, &error)
            })
        })
        .collect();
    if failed > 0 {
        tracing::warn!(
            airway,
            failed,
            of = converted.len(),
            version = conversion.desired,
            "objects can't be converted; their annotations say why"
        );
    }
    Ok(conversion.done(&converted))
}

/// What became of each object: all at once; where that fails, each alone, so that one bad object is told from the others.
async fn convert(
    control: &Control,
    airway: &Airway,
    conversion: &Conversion,
) -> Vec<Result<Value, ConvertError>> {
    let all = &conversion.objects;
    let converter = match load_converter(control, airway, false).await {
        Ok(Some(converter)) => converter,
        Ok(None) => return refused(all, "its Airway has no converter"),
        Err(error) => return refused(all, &error.chain()),
    };
    let run = Run {
        control,
        converter: &converter,
        conversion,
        bounds: Bounds {
            time: Some(RUN),
            memory: airway.spec.memory_bytes(),
            ..Bounds::default()
        },
    };
    match run.of(all).await {
        Ok(done) => done.into_iter().map(Ok).collect(),
        Err(error) if all.len() == 1 => vec![Err(error)],
        Err(_) => {
            let each: Vec<_> = all.iter().map(|object| run.one(object).boxed()).collect();
            stream::iter(each).buffered(AT_ONCE).collect().await
        }
    }
}

fn refused(objects: &[Value], why: &str) -> Vec<Result<Value, ConvertError>> {
    let each = objects.iter();
    each.map(|_| Err(ConvertError::Load(why.to_owned())))
        .collect()
}

/// What the runs for one review share.
struct Run<'a> {
    control: &'a Control,
    converter: &'a LoadedFlight,
    conversion: &'a Conversion,
    bounds: Bounds,
}

impl Run<'_> {
    async fn of(&self, objects: &[Value]) -> Result<Vec<Value>, ConvertError> {
        let bounds = self.bounds.clone();
        let engine = &self.control.engine;
        engine
            .convert(self.converter, self.conversion, objects, bounds)
            .await
    }

    async fn one(&self, object: &Value) -> Result<Value, ConvertError> {
        let mut converted = self.of(std::slice::from_ref(object)).await?;
        converted
            .pop()
            .ok_or_else(|| ConvertError::Output("it gave nothing".into()))
    }
}
