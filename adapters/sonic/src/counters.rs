//! One reading of the counters of all controlled ports.

use std::str::FromStr;
use std::time::Duration;

use crate::schema;
use crate::{Database, Databases, Error, Layout};

/// The counters that show the sent and lost volume of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The counters of the controlled queues, which SONiC reads every 10 s by default
    /// (`counterpoll queue interval`).
    #[default]
    Queue,
    /// The counters of the port, which include the traffic of all other queues; read every second
    /// (`counterpoll port interval`).
    Port,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        match text {
            "queue" => Ok(Source::Queue),
            "port" => Ok(Source::Port),
            _ => Err("must be queue or port".to_owned()),
        }
    }
}

/// Volumes that a port has sent and lost since the switch began to count, and the bytes that wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Bytes sent.
    pub sent: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes lost for lack of buffer, if the switch counts them; if not, they are estimated from packets.
    pub dropped: Option<u64>,
    /// Packets lost for lack of buffer.
    pub dropped_packets: u64,
    /// Bytes that wait now, if the switch reports it for every queue.
    pub occupancy: Option<u64>,
    /// The sum of the largest lengths of the queues in the last interval of watermarks, bytes.
    pub watermark: Option<u64>,
}

/// One reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time at which the switch read the counters, on its own steady clock, if reported.
    pub taken: Option<Duration>,
    /// Counters by port, in the order of [`Layout::ports`].
    pub ports: Vec<PortCounters>,
}

/// Counters of a queue: sent, packets sent, dropped, packets dropped, occupancy, watermark.
const QUEUE: [&str; 6] = [
    "SAI_QUEUE_STAT_BYTES",
    "SAI_QUEUE_STAT_PACKETS",
    "SAI_QUEUE_STAT_DROPPED_BYTES",
    "SAI_QUEUE_STAT_DROPPED_PACKETS",
    "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES",
    "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES",
];

/// Counters of a port: sent, packets sent (two kinds), packets dropped.
const PORT: [&str; 4] = [
    "SAI_PORT_STAT_IF_OUT_OCTETS",
    "SAI_PORT_STAT_IF_OUT_UCAST_PKTS",
    "SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS",
    "SAI_PORT_STAT_IF_OUT_DISCARDS",
];

/// Returns the field with the time of the last reading of a source. syncd names it after the group and the
/// kind of counters (sonic-sairedis, `syncd/FlexCounter.cpp`).
pub fn time_stamp(source: Source) -> &'static str {
    match source {
        Source::Queue => "QUEUE_STAT_COUNTER_Queue_Counter_time_stamp",
        Source::Port => "PORT_STAT_COUNTER_Port_Counter_time_stamp",
    }
}

type Row = Vec<Option<String>>;

/// Reads all counters at once.
///
/// # Errors
/// Returns connection errors, and an error if a counter is missing or is no number.
pub fn read(databases: &mut Databases, layout: &Layout, source: Source) -> Result<Sample, Error> {
    let mut pipeline = redis::pipe();
    let row = |pipeline: &mut redis::Pipeline, key: &str, fields: &[&str]| {
        pipeline.cmd("HMGET").arg(key).arg(fields);
    };
    row(&mut pipeline, schema::TIME_STAMPS, &[time_stamp(source)]);
    for port in &layout.ports {
        if source == Source::Port {
            row(&mut pipeline, &schema::counters(&port.oid), &PORT);
        }
        for oid in port.queues.iter().flat_map(|queues| &queues.oids) {
            row(&mut pipeline, &schema::counters(oid), &QUEUE);
        }
    }
    let rows: Vec<Row> = databases.send(Database::Counters, "cannot read counters", &pipeline)?;
    let mut rows = rows.into_iter();
    let taken = rows.next().and_then(|row| row.first().cloned().flatten());
    let taken = taken
        .and_then(|ns| ns.parse().ok())
        .map(Duration::from_nanos);
    let port = |port: &crate::layout::Port| {
        let of_port = match source {
            Source::Port => Some(of_port(&port.oid, &rows.next().unwrap_or_default())?),
            Source::Queue => None,
        };
        let mut total: Option<PortCounters> = None;
        for oid in port.queues.iter().flat_map(|queues| &queues.oids) {
            let queue = of_queue(oid, &rows.next().unwrap_or_default(), source)?;
            total = Some(total.map_or(queue, |total| sum(total, queue)));
        }
        let total = total.unwrap_or_default();
        Ok(match of_port {
            None => total,
            Some(of_port) => PortCounters {
                occupancy: total.occupancy,
                watermark: total.watermark,
                ..of_port
            },
        })
    };
    let ports = layout
        .ports
        .iter()
        .map(port)
        .collect::<Result<_, Error>>()?;
    Ok(Sample { taken, ports })
}

fn of_queue(oid: &str, row: &Row, source: Source) -> Result<PortCounters, Error> {
    let value = |place: usize| number(oid, QUEUE[place], row.get(place));
    let (occupancy, watermark) = (value(4)?, value(5)?);
    if occupancy.is_none() && watermark.is_none() {
        let problem = format!(
            "has neither {} nor {}; enable them with `counterpoll watermark enable`",
            QUEUE[4], QUEUE[5]
        );
        return Err(Error::switch(location(oid), problem));
    }
    let lengths = PortCounters {
        occupancy,
        watermark,
        ..PortCounters::default()
    };
    if source == Source::Port {
        return Ok(lengths);
    }
    Ok(PortCounters {
        sent: needed(oid, QUEUE[0], value(0)?)?,
        sent_packets: needed(oid, QUEUE[1], value(1)?)?,
        dropped: value(2)?,
        dropped_packets: needed(oid, QUEUE[3], value(3)?)?,
        ..lengths
    })
}

fn of_port(oid: &str, row: &Row) -> Result<PortCounters, Error> {
    let value = |place: usize| needed(oid, PORT[place], number(oid, PORT[place], row.get(place))?);
    Ok(PortCounters {
        sent: value(0)?,
        sent_packets: value(1)?.saturating_add(value(2)?),
        dropped_packets: value(3)?,
        ..PortCounters::default()
    })
}

/// Adds the counters of two queues. A value that one queue does not report is unknown for the sum.
fn sum(a: PortCounters, b: PortCounters) -> PortCounters {
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    PortCounters {
        sent: a.sent.saturating_add(b.sent),
        sent_packets: a.sent_packets.saturating_add(b.sent_packets),
        dropped: both(a.dropped, b.dropped),
        dropped_packets: a.dropped_packets.saturating_add(b.dropped_packets),
        occupancy: both(a.occupancy, b.occupancy),
        watermark: both(a.watermark, b.watermark),
    }
}

fn location(oid: &str) -> String {
    format!("{} {}", Database::Counters.name(), schema::counters(oid))
}

/// Parses a counter; `None` if the switch does not have it, which it may report as `N/A`.
fn number(oid: &str, field: &str, value: Option<&Option<String>>) -> Result<Option<u64>, Error> {
    match value.and_then(Option::as_deref) {
        None | Some("N/A" | "") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            let text = bufgym_util::input::excerpt(text);
            Error::switch(
                location(oid),
                format!("{field} is '{text}', no number of bytes or packets"),
            )
        }),
    }
}

fn needed(oid: &str, field: &str, value: Option<u64>) -> Result<u64, Error> {
    value.ok_or_else(|| {
        Error::switch(
            location(oid),
            format!("has no {field}; are its counters polled (`counterpoll show`)?"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> Row {
        let value = |text: &&str| (!text.is_empty()).then(|| (*text).to_owned());
        values.iter().map(value).collect()
    }

    #[test]
    fn a_queue_is_read_with_what_its_switch_tells() {
        let full = of_queue(
            "oid:1",
            &row(&["1000", "2", "300", "1", "40", "50"]),
            Source::Queue,
        )
        .unwrap();
        let expected = PortCounters {
            sent: 1_000,
            sent_packets: 2,
            dropped: Some(300),
            dropped_packets: 1,
            occupancy: Some(40),
            watermark: Some(50),
        };
        assert_eq!(full, expected);
        let poor = of_queue(
            "oid:2",
            &row(&["7", "1", "N/A", "0", "", "9"]),
            Source::Queue,
        )
        .unwrap();
        assert_eq!(
            (poor.dropped, poor.occupancy, poor.watermark),
            (None, None, Some(9))
        );
        let both = sum(full, poor);
        assert_eq!(
            (both.sent, both.dropped, both.watermark),
            (1_007, None, Some(59))
        );
        assert_eq!(both.occupancy, None);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (values, word) in [
            (&["", "2", "3", "4", "5", "6"], "SAI_QUEUE_STAT_BYTES"),
            (
                &["1", "2", "3", "4", "", ""],
                "counterpoll watermark enable",
            ),
            (
                &["1", "2", "x", "4", "5", "6"],
                "SAI_QUEUE_STAT_DROPPED_BYTES is 'x'",
            ),
            (&["-1", "2", "3", "4", "5", "6"], "'-1'"),
        ] {
            let error = of_queue("oid:1", &row(values), Source::Queue)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("COUNTERS_DB COUNTERS:oid:1: ") && error.contains(word),
                "{error}"
            );
        }
        let error = of_port("oid:9", &row(&["1", "2", "3"]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("SAI_PORT_STAT_IF_OUT_DISCARDS"), "{error}");
        let port = of_port("oid:9", &row(&["10", "2", "3", "4"])).unwrap();
        assert_eq!(
            (port.sent, port.sent_packets, port.dropped_packets),
            (10, 5, 4)
        );
    }
}
