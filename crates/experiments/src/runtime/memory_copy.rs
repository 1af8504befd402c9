//! Memory bandwidth as STREAM measures it: copy, scale, add and triad of arrays of 8-byte numbers.

use super::repeat::{Done, repeated};
use std::io;
use std::time::Duration;

/// Numbers of one array: 64 MiB, twice the last cache of large servers for each of the three.
const NUMBERS: usize = 8 << 20;

/// What is done to each number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// `a = b`
    Copy,
    /// `a = s b`
    Scale,
    /// `a = b + c`
    Add,
    /// `a = b + s c`
    Triad,
}

/// Goes through the arrays for a time; the units are bytes, as STREAM counts them.
pub(super) fn run(kernel: Kernel, time: Duration) -> io::Result<Done> {
    let [mut a, b, c] = [1.0, 2.0, 0.5].map(|value| vec![value; NUMBERS]);
    let arrays = match kernel {
        Kernel::Copy | Kernel::Scale => 2,
        Kernel::Add | Kernel::Triad => 3,
    };
    let scale = std::hint::black_box(3.0);
    repeated(time, (arrays * NUMBERS * size_of::<f64>()) as f64, || {
        match kernel {
            Kernel::Copy => a.copy_from_slice(&b),
            Kernel::Scale => a.iter_mut().zip(&b).for_each(|(a, b)| *a = scale * b),
            Kernel::Add => {
                a.iter_mut().zip(&b).zip(&c).for_each(|((a, b), c)| *a = b + c);
            }
            Kernel::Triad => {
                a.iter_mut().zip(&b).zip(&c).for_each(|((a, b), c)| *a = b + scale * c);
            }
        }
        std::hint::black_box(&a);
        Ok(())
    })
}
