//! The conversion of instances between the versions of their kind, by the Airway's converter.
//!
//! A list fails as a whole, and with it every watch and every removal that needs one. So what can't be converted does not
//! fail the review: it is handed on as it is, with the reason in an annotation. Nobody can store it so (see
//! [`super::instance`]), the controller evaluates nothing by it, and it can be removed.

use std::time::Duration;

use atc_api::Airway;
use atc_engine::convert::{Conversion, ConvertError};
use atc_engine::flight::Bounds;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::control::Control;
use crate::kinds::Kind;
use crate::modules::{Converter, load_converter};

/// One run of a converter: 10 s, as in the existing tool.
const RUN: Duration = Duration::from_secs(10);
/// One run for an object alone, after a run for all of them failed.
const ALONE: Duration = Duration::from_secs(2);
/// All that is done for one review. The API server gives up after 30 s, with words of its own.
const REVIEW: Duration = Duration::from_secs(24);
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
    let deadline = Instant::now() + REVIEW;
    let results = match timeout_at(deadline, converter(control, &kind)).await {
        Ok(Ok(converter)) => convert(control, &converter, &conversion, deadline).await,
        Ok(Err(why)) => refused(&conversion.objects, &why),
        Err(_) => {
            return Ok(conversion.failed(&format!(
                "the converter of Airway \"{airway}\" could not be had within {} s; try again",
                REVIEW.as_secs()
            )));
        }
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

/// The converter and its memory limit: what the Airway is served with; before it is served, what it names.
async fn converter(control: &Control, kind: &Kind) -> Result<Converter, String> {
    if let Some(converter) = kind.setup().and_then(|setup| setup.converter.clone()) {
        return Ok(converter);
    }
    let airway: Airway = serde_json::from_value((*kind.airway()).clone())
        .map_err(|error| format!("its Airway can't be read: {error}"))?;
    let loaded = load_converter(control, &airway, false).await;
    loaded
        .map_err(|error| error.chain())?
        .map(|module| Converter::of(module, &airway))
        .ok_or_else(|| "its Airway has no converter".to_owned())
}

/// What became of each object: all at once; where that fails, each alone, so that one bad object is told from the others.
/// Whatever is not converted when the time is over has not been.
async fn convert(
    control: &Control,
    converter: &Converter,
    conversion: &Conversion,
    deadline: Instant,
) -> Vec<Result<Value, ConvertError>> {
    let all = &conversion.objects;
    let run = Run {
        control,
        converter,
        conversion,
        deadline,
    };
    match run.of(all, RUN).await {
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
    converter: &'a Converter,
    conversion: &'a Conversion,
    deadline: Instant,
}

impl Run<'_> {
    async fn of(&self, objects: &[Value], time: Duration) -> Result<Vec<Value>, ConvertError> {
        let bounds = Bounds {
            time: Some(time),
            memory: self.converter.memory,
            ..Bounds::default()
        };
        let module = &self.converter.module;
        let engine = &self.control.engine;
        let run = engine.convert(module, self.conversion, objects, bounds);
        timeout_at(self.deadline, run).await.unwrap_or_else(|_| {
            let limit = REVIEW.as_secs();
            Err(ConvertError::Run(format!(
                "its turn did not come within {limit} s"
            )))
        })
    }

    async fn one(&self, object: &Value) -> Result<Value, ConvertError> {
        let mut converted = self.of(std::slice::from_ref(object), ALONE).await?;
        converted
            .pop()
            .ok_or_else(|| ConvertError::Output("it gave nothing".into()))
    }
}
