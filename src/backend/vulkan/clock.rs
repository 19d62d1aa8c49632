//! The GPU's own clock.

use std::sync::Arc;

use ash::vk;

use super::context::Context;
use crate::error::Result;

/// How a device counts time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    /// Which bits of a count mean something.
    mask: u64,
    period_ns: f64,
}

/// Counts of the clock at up to three places in a queue.
pub(super) struct Ticks {
    pool: vk::QueryPool,
    clock: Clock,
    context: Arc<Context>,
}

/// How many places.
const PLACES: u32 = 3;

impl Clock {
    /// The clock of a queue, if it has one.
    pub(super) fn new(valid_bits: u32, period_ns: f32) -> Option<Self> {
        let mask = u64::MAX.checked_shr(64 - valid_bits.min(64))?;
        (valid_bits > 0 && period_ns > 0.0).then_some(Self { mask, period_ns: f64::from(period_ns) })
    }

    /// Milliseconds from one count to another, less than 0 if that was before: whichever way is the shorter one round.
    fn signed_ms(self, begin: u64, end: u64) -> f64 {
        let there = self.ms(begin, end);
        let back = self.ms(end, begin);
        if there <= back { there } else { -back }
    }

    /// Milliseconds from one count to the next, which may have started again from 0 between them.
    fn ms(self, begin: u64, end: u64) -> f64 {
        (end.wrapping_sub(begin) & self.mask) as f64 * self.period_ns / 1e6
    }
}

impl Ticks {
    pub(super) fn new(context: &Arc<Context>, clock: Clock) -> Result<Self> {
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(PLACES);
        // SAFETY: the queue's family counts time.
        let pool = context.check("vkCreateQueryPool", unsafe { context.device.create_query_pool(&info, None) })?;
        Ok(Self { pool, clock, context: Arc::clone(context) })
    }

    /// Records a count, the first place's first: when all before is done.
    pub(super) fn mark(&self, commands: vk::CommandBuffer, place: u32) {
        // SAFETY: the commands are being recorded, and the submission holds this.
        unsafe {
            if place == 0 {
                self.context.device.cmd_reset_query_pool(commands, self.pool, 0, PLACES);
            }
            self.context.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, self.pool, place);
        }
    }

    /// The time from one place to the next, once the submissions are done; None if the driver does not have it.
    pub(super) fn ms(&self, from: u32, to: u32) -> Result<Option<f64>> {
        Ok(self.count(from)?.zip(self.count(to)?).map(|(begin, end)| self.clock.ms(begin, end)))
    }

    fn count(&self, place: u32) -> Result<Option<u64>> {
        let mut count = [0u64];
        // SAFETY: the pool has that place, of 64 bits.
        let read = unsafe { self.context.device.get_query_pool_results(self.pool, place, &mut count, vk::QueryResultFlags::TYPE_64) };
        match read {
            Err(vk::Result::NOT_READY) => Ok(None),
            read => self.context.check("vkGetQueryPoolResults", read).map(|()| Some(count[0])),
        }
    }
}

impl Ticks {
    /// Milliseconds since another one's first place, once both submissions are done; None if the driver does not have it.
    pub(super) fn ms_since(&self, earlier: &Self) -> Result<Option<f64>> {
        Ok(earlier.count(0)?.zip(self.count(0)?).map(|(begin, end)| self.clock.signed_ms(begin, end)))
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: the queue, which holds what it uses, is done with it.
        unsafe { self.context.device.destroy_query_pool(self.pool, None) };
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn counts_may_start_again_from_nothing() {
        let clock = Clock::new(36, 100.0).unwrap();
        assert_eq!(clock.ms(20, 30), 1e-3);
        assert_eq!(clock.ms((1 << 36) - 10, 10), 2e-3);
        // What lies above the bits that mean something is noise.
        assert_eq!(clock.ms(20 | 7 << 40, 30), 1e-3);
        assert_eq!(Clock::new(64, 1.0).unwrap().ms(u64::MAX, 999_999), 1.0);
    }

    #[test]
    fn without_bits_there_is_no_clock() {
        assert_eq!((Clock::new(0, 1.0), Clock::new(64, 0.0)), (None, None));
    }
}
