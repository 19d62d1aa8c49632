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

/// A count, for a mark in the queue.
pub(super) struct Tick {
    pool: vk::QueryPool,
    clock: Clock,
    context: Arc<Context>,
}

/// A pair of counts, before and after a kernel.
pub(super) struct Ticks {
    pool: vk::QueryPool,
    clock: Clock,
    context: Arc<Context>,
}

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

/// A pool of so many counts.
fn pool(context: &Context, count: u32) -> Result<vk::QueryPool> {
    let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(count);
    // SAFETY: the queue's family counts time.
    context.check("vkCreateQueryPool", unsafe { context.device.create_query_pool(&info, None) })
}

impl Tick {
    pub(super) fn new(context: &Arc<Context>, clock: Clock) -> Result<Self> {
        Ok(Self { pool: pool(context, 1)?, clock, context: Arc::clone(context) })
    }

    /// Records the count: when all before is done.
    pub(super) fn record(&self, commands: vk::CommandBuffer) {
        // SAFETY: the commands are being recorded, and the submission holds this.
        unsafe {
            self.context.device.cmd_reset_query_pool(commands, self.pool, 0, 1);
            self.context.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, self.pool, 0);
        }
    }

    /// Milliseconds since another of the same device, once both submissions are done.
    pub(super) fn ms_since(&self, earlier: &Self) -> Result<f64> {
        let read = |tick: &Self| {
            let mut counts = [0u64; 1];
            // SAFETY: there is one query of 64 bits.
            let read = unsafe { self.context.device.get_query_pool_results(tick.pool, 0, &mut counts, vk::QueryResultFlags::TYPE_64) };
            self.context.check("vkGetQueryPoolResults", read).map(|()| counts[0])
        };
        Ok(self.clock.signed_ms(read(earlier)?, read(self)?))
    }
}

impl Drop for Tick {
    fn drop(&mut self) {
        // SAFETY: the queue, which holds what it uses, is done with it.
        unsafe { self.context.device.destroy_query_pool(self.pool, None) };
    }
}

impl Ticks {
    pub(super) fn new(context: &Arc<Context>, clock: Clock) -> Result<Self> {
        Ok(Self { pool: pool(context, 2)?, clock, context: Arc::clone(context) })
    }

    /// Records the first count: when all before is done.
    pub(super) fn begin(&self, commands: vk::CommandBuffer) {
        // SAFETY: the commands are being recorded, and the submission holds this.
        unsafe {
            self.context.device.cmd_reset_query_pool(commands, self.pool, 0, 2);
            self.context.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, self.pool, 0);
        }
    }

    /// Records the second count: when the kernel is done.
    pub(super) fn end(&self, commands: vk::CommandBuffer) {
        // SAFETY: as above.
        unsafe { self.context.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, self.pool, 1) };
    }

    /// The time between the two, once the submission is done; None if the driver does not have them.
    pub(super) fn ms(&self, context: &Context) -> Result<Option<f64>> {
        let mut counts = [0u64; 2];
        // SAFETY: there are two queries of 64 bits.
        let read = unsafe { context.device.get_query_pool_results(self.pool, 0, &mut counts, vk::QueryResultFlags::TYPE_64) };
        match read {
            Err(vk::Result::NOT_READY) => Ok(None),
            read => context.check("vkGetQueryPoolResults", read).map(|()| Some(self.clock.ms(counts[0], counts[1]))),
        }
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
