//! What a trace says about itself: where it came from, its clock, its devices, its rank in a distributed job.

use hashbrown::HashMap;
use serde_json::Value;

/// Free key-value metadata in file order; values are JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    entries: Vec<(String, String)>,
    /// Where each key is, so that a file with very many keys is read in linear time.
    indices: HashMap<String, usize>,
}

impl Metadata {
    /// Sets a key; a key set again keeps its position.
    pub fn set(&mut self, key: &str, json: &str) {
        match self.indices.get(key) {
            Some(&index) => json.clone_into(&mut self.entries[index].1),
            None => {
                self.indices.insert(key.to_owned(), self.entries.len());
                self.entries.push((key.to_owned(), json.to_owned()));
            }
        }
    }

    /// The JSON text of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.indices.get(key).map(|&index| self.entries[index].1.as_str())
    }

    /// The value of a key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<Value> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// All keys and values in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// How trace time relates to the clocks outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The file's own clock at [`crate::Timestamp`] 0, in nanoseconds.
    pub origin: i64,
    /// Unix time, in nanoseconds, at the zero of the file's own clock (`baseTimeNanoseconds`).
    pub base_unix: Option<i64>,
}

impl Clock {
    /// Unix time in nanoseconds at [`crate::Timestamp`] 0, where it is known. Kineto before 2023 wrote Unix time
    /// directly and no base.
    #[must_use]
    pub fn unix_origin(&self) -> Option<i64> {
        const YEAR_2001: i64 = 1_000_000_000_000_000_000;
        match self.base_unix {
            Some(base) => base.checked_add(self.origin),
            None => (self.origin > YEAR_2001).then_some(self.origin),
        }
    }
}

/// Where a trace came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The format it was read from, such as "Kineto trace".
    pub format: String,
    /// The compression around it, such as "gzip".
    pub compression: Option<String>,
    /// The path or name.
    pub path: Option<String>,
    /// Bytes read, after decompression.
    pub bytes: u64,
}

/// A device as the trace describes it; fields the trace leaves out are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Its index.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Bytes of memory.
    pub memory: Option<i64>,
    /// Compute capability (major, minor).
    pub capability: Option<(i64, i64)>,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: Option<i64>,
    /// Threads that fit one multiprocessor.
    pub threads_per_multiprocessor: Option<i64>,
    /// Threads of a warp or wavefront.
    pub warp_size: Option<i64>,
}

impl Device {
    /// The devices of `deviceProperties`.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata) -> Vec<Self> {
        let Some(Value::Array(items)) = metadata.value("deviceProperties") else { return Vec::new() };
        let int = |item: &Value, keys: &[&str]| keys.iter().find_map(|key| item.get(key)?.as_i64());
        items
            .iter()
            .enumerate()
            .map(|(index, item)| Self {
                id: int(item, &["id"]).unwrap_or(index as i64),
                name: item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                memory: int(item, &["totalGlobalMem", "maxMemAllocSize"]),
                capability: int(item, &["computeMajor"]).zip(int(item, &["computeMinor"])),
                multiprocessors: int(item, &["numSms", "maxComputeUnits"]),
                threads_per_multiprocessor: int(item, &["maxThreadsPerMultiprocessor"]),
                warp_size: int(item, &["warpSize"]),
            })
            .collect()
    }
}

/// A process's position in a distributed job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributed {
    /// Its rank.
    pub rank: Option<i64>,
    /// How many ranks there are.
    pub world_size: Option<i64>,
    /// The communication backend.
    pub backend: Option<String>,
}

impl Distributed {
    /// What `distributedInfo` says, if the trace has it.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata) -> Option<Self> {
        let info = metadata.value("distributedInfo")?;
        let int = |key: &str| match info.get(key)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_i64(),
        };
        Some(Self {
            rank: int("rank"),
            world_size: int("world_size"),
            backend: info.get("backend").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_devices_and_rank() {
        let mut metadata = Metadata::default();
        metadata
            .set("deviceProperties", r#"[{"id": 3, "name": "H200", "computeMajor": 9, "computeMinor": 0}]"#);
        metadata.set("distributedInfo", r#"{"backend": "nccl", "rank": 1, "world_size": 2}"#);
        let device = &Device::from_metadata(&metadata)[0];
        assert_eq!((device.id, device.name.as_str(), device.capability), (3, "H200", Some((9, 0))));
        let distributed = Distributed::from_metadata(&metadata).unwrap();
        assert_eq!((distributed.rank, distributed.world_size), (Some(1), Some(2)));
    }

    #[test]
    fn unix_time_is_known_with_a_base_or_from_old_files() {
        assert_eq!(Clock { origin: 5, base_unix: Some(100) }.unix_origin(), Some(105));
        assert_eq!(Clock { origin: 5, base_unix: None }.unix_origin(), None);
        let old = Clock { origin: 1_623_142_623_460_111_000, base_unix: None };
        assert_eq!(old.unix_origin(), Some(old.origin));
    }
}
