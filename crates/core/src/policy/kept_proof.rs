//! What a stop rests on, as it is kept.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A proof as text. Every run that was killed keeps one in memory, and as a tree of values it takes several times as much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptProof(Box<str>);

impl KeptProof {
    /// The proof itself.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Value> for KeptProof {
    fn from(proof: Value) -> KeptProof {
        KeptProof(proof.to_string().into())
    }
}

impl Serialize for KeptProof {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KeptProof {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeptProof, D::Error> {
        Ok(KeptProof(Box::<RawValue>::deserialize(deserializer)?.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_and_read_as_the_value_it_is() {
        let proof = json!({"summary": "three \"same\" calls", "steps": [{"step": 1}, {"step": 2}], "none": null});
        let kept = KeptProof::from(proof.clone());
        assert_eq!(kept.value(), proof);
        let written = serde_json::to_string(&vec![&kept]).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), json!([proof]));
        assert_eq!(serde_json::from_value::<KeptProof>(proof).unwrap(), kept);
        assert_eq!(serde_json::from_str::<Vec<KeptProof>>(&written).unwrap(), [kept]);
    }
}
