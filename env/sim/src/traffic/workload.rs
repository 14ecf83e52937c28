//! The published distributions that are compiled in.

use std::sync::OnceLock;

use super::{SizeDistribution, Workload};

impl Workload {
    /// The distribution of the flow sizes.
    pub fn distribution(self) -> &'static SizeDistribution {
        static PARSED: [OnceLock<SizeDistribution>; 4] = [const { OnceLock::new() }; 4];
        let (slot, origin, text) = match self {
            Workload::WebSearch => (
                0,
                "web_search.csv",
                include_str!("../../data/web_search.csv"),
            ),
            Workload::DataMining => (
                1,
                "data_mining.csv",
                include_str!("../../data/data_mining.csv"),
            ),
            Workload::FbHadoop => (2, "fb_hadoop.csv", include_str!("../../data/fb_hadoop.csv")),
            Workload::AliStorage => (
                3,
                "ali_storage.csv",
                include_str!("../../data/ali_storage.csv"),
            ),
        };
        PARSED[slot].get_or_init(|| {
            SizeDistribution::from_csv(text, origin)
                .expect("the compiled-in distributions are valid: tested")
        })
    }

    /// The kind of its flows in a trace: `ws`, `dm`, `hadoop` or `storage`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Workload::WebSearch => "ws",
            Workload::DataMining => "dm",
            Workload::FbHadoop => "hadoop",
            Workload::AliStorage => "storage",
        }
    }
}
