//! Convolutions, pools and Fourier transforms as ONNX has them.

use lapidary::{Conv, Expr, Pool};

use super::operators::{Call, Refused};

impl Call<'_> {
    /// An attribute of a number for each dimension that a window slides along.
    pub fn sizes_of(&self, name: &str) -> Vec<u64> {
        self.ints(name).unwrap_or_default().into_iter().map(i64::cast_unsigned).collect()
    }

    /// What is before and behind each dimension.
    pub fn pads(&self) -> Vec<[u64; 2]> {
        let pads = self.sizes_of("pads");
        let (before, behind) = pads.split_at(pads.len() / 2);
        before.iter().zip(behind).map(|(&before, &behind)| [before, behind]).collect()
    }

    /// Real numbers have a last dimension of 1.
    pub fn dft(&self) -> Result<Expr, Refused> {
        let (x, sizes) = (self.expr(0)?, self.sizes(0)?);
        let axis = self
            .int64s("axis", 2)?
            .and_then(|axis| axis.first().copied())
            .unwrap_or_else(|| self.int("axis", if self.node.inputs.len() > 2 { -2 } else { 1 }));
        // Ours does not count that dimension.
        let axis = if axis < 0 { axis + 1 } else { axis };
        let length = self.int64s("dft_length", 1)?.and_then(|length| length.first().map(|length| length.cast_unsigned()));
        let is_real = sizes.last() == Some(&1);
        let real = || x.reshape(&sizes[..sizes.len() - 1]);
        Ok(match (is_real, self.int("inverse", 0) != 0, self.int("onesided", 0) != 0) {
            (true, false, true) => real().rfft(axis, length),
            (true, false, false) => real().fft_of_real(axis, length),
            (false, false, false) => x.fft(axis, length),
            (false, true, false) => x.ifft(axis, length),
            (false, true, true) => {
                let x = x.irfft(axis, length);
                let mut sizes: Vec<_> = x.shape()?.iter().map(|&size| size as i64).collect();
                sizes.push(1);
                x.reshape(&sizes)
            }
            _ => return Err(Refused::Unsupported("such a transform".to_owned())),
        })
    }

    pub fn conv(&self) -> Result<Expr, Refused> {
        let mut conv = Conv::default().strides(&self.sizes_of("strides")).dilations(&self.sizes_of("dilations"));
        conv = match self.string("auto_pad", "NOTSET").as_str() {
            "SAME_UPPER" => conv.same_upper(),
            "SAME_LOWER" => conv.same_lower(),
            _ => conv.pads(&self.pads()),
        };
        if self.has(2) {
            conv = conv.bias(self.expr(2)?);
        }
        Ok(self.expr(0)?.conv(self.expr(1)?, &conv.groups(self.int("group", 1).cast_unsigned())))
    }

    pub fn pool(&self) -> Result<Pool, Refused> {
        let dtype = self.expr(0)?.dtype()?;
        if !dtype.is_float() {
            return Err(Refused::Unsupported(format!("pools of {dtype}")));
        }
        let pool = Pool::new(&self.sizes_of("kernel_shape")).strides(&self.sizes_of("strides")).dilations(&self.sizes_of("dilations"));
        let pool = pool.ceil_mode(self.int("ceil_mode", 0) != 0).count_include_pad(self.int("count_include_pad", 0) != 0);
        Ok(match self.string("auto_pad", "NOTSET").as_str() {
            "SAME_UPPER" => pool.same_upper(),
            "SAME_LOWER" => pool.same_lower(),
            _ => pool.pads(&self.pads()),
        })
    }

    /// Where the largest elements are; with `storage_order` counted column by column in each channel.
    pub fn indices(&self, pool: &Pool) -> Result<Expr, Refused> {
        let (places, sizes) = (self.expr(0)?.max_pool_indices(pool), self.sizes(0)?);
        let (&[.., height, width], 1) = (&sizes[..], self.int("storage_order", 0)) else { return Ok(places) };
        let [height, width] = [height, width].map(|size| size as u32);
        let (row, column) = (places.div(width).modulo(height), places.modulo(width));
        Ok(places.div(width * height).mul(width * height) + column.mul(height) + row)
    }
}
