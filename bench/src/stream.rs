//! The order in which readings arrive: interleaved over the devices, one step after the other.

use std::sync::Mutex;

use crate::workload::{DEVICE_COUNT, Reading};

/// Hands out each reading once, in order.
#[derive(Debug)]
pub(crate) struct Stream {
    place: Mutex<Place>,
    /// Devices that began long before the others, so that long ranges exist.
    veterans: u32,
    /// The step at which the others begin.
    others_from: u32,
}

#[derive(Debug)]
struct Place {
    step: u32,
    device: u32,
}

impl Stream {
    pub(crate) fn new(veterans: u32, others_from: u32) -> Self {
        Self {
            place: Mutex::new(Place { step: 1, device: 0 }),
            veterans,
            others_from: others_from.max(1),
        }
    }

    /// The next `count` readings.
    pub(crate) fn take(&self, count: usize) -> Vec<Reading> {
        let mut place = self.place.lock().expect("nobody panics with the lock");
        let mut readings = Vec::with_capacity(count);
        while readings.len() < count {
            readings.push(Reading {
                device: place.device,
                step: place.step,
            });
            place.device += 1;
            let devices = if place.step < self.others_from {
                self.veterans
            } else {
                DEVICE_COUNT
            };
            if place.device >= devices {
                place.device = 0;
                place.step += 1;
            }
        }
        readings
    }

    /// The first step of a device.
    pub(crate) fn first_step(&self, device: u32) -> u32 {
        if device < self.veterans {
            1
        } else {
            self.others_from
        }
    }

    /// A device with a long history.
    pub(crate) fn veteran(&self, seed: u64) -> u32 {
        u32::try_from(seed % u64::from(self.veterans)).expect("below the count of devices")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_interleaved_and_never_repeated() {
        let stream = Stream::new(2, 3);
        let first: Vec<_> = stream
            .take(6)
            .iter()
            .map(|reading| (reading.step, reading.device))
            .collect();
        assert_eq!(first, [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
        assert_eq!(stream.take(1)[0], Reading { device: 2, step: 3 });
    }
}
