//! Mapped memory behind safe types: the only unsafe code of the experiments.
//!
//! Each type rests on one promise that it checks itself: [`SharedWords`] hands out atomics, so
//! that any process may write at the same time; [`SealedWords`] hands out plain words, because a
//! sealed file cannot change or shrink; [`PrivateWords`] belongs to this process alone. [`wide_sum`] runs
//! instructions that not every CPU has, where it has seen that this one has them.
#![expect(unsafe_code, reason = "neither mapping memory nor wide vectors have a safe interface")]

use rustix::fs::SealFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use untax_core::Bytes;

/// What the seals of a file must hold for its words never to change or vanish.
pub const FROZEN: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// The distance of a control page's words from its head, so that they share no cache line.
const HEAD_BYTES: usize = 64;

/// Where a mapping begins, so that it may be on huge pages: a multiple of the largest that the kernel
/// gives without being asked for a pool, on x86-64.
pub const ALIGN: usize = Bytes::MIB_2.0 as usize;

/// Whether the kernel may or may not back a mapping with transparent huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Huge {
    /// `MADV_HUGEPAGE`.
    Wanted,
    /// `MADV_NOHUGEPAGE`.
    Refused,
    /// No advice: memory from a pool takes none.
    Pool,
}

/// An aligned range of addresses with memory behind it, given back when dropped.
struct Range {
    reserved: NonNull<c_void>,
    reserved_bytes: usize,
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: a range is only numbers; what may be done with the memory from several threads is
// decided by the types below, which hand it out as atomics, as constant words, or behind `&mut`.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Range {
    /// Reserves addresses for `bytes` of memory that start at a multiple of `align`.
    fn reserve(bytes: usize, align: usize) -> io::Result<Self> {
        let reserved_bytes = bytes.checked_add(align).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let at = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                reserved_bytes,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let reserved = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = at.addr().next_multiple_of(align) - at.addr();
        // SAFETY: `skip` is less than `align`, so that `skip + bytes` lies within the reservation.
        let start = unsafe { reserved.byte_add(skip) };
        Ok(Self { reserved, reserved_bytes, start, bytes })
    }

    /// Puts the file's first `bytes` at `offset` of the range.
    fn place(
        &self,
        fd: BorrowedFd<'_>,
        offset: usize,
        bytes: usize,
        prot: ProtFlags,
    ) -> io::Result<()> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: `MAP_FIXED` replaces only addresses of our own reservation, checked above, and
        // nothing refers to them before the owner of this range is made.
        unsafe {
            let at = self.start.byte_add(offset).as_ptr();
            rustix::mm::mmap(at, bytes, prot, MapFlags::SHARED | MapFlags::FIXED, fd, 0)?;
        }
        Ok(())
    }

    fn advise(&self, huge: Huge) -> io::Result<()> {
        let advice = match huge {
            Huge::Wanted => Advice::LinuxHugepage,
            Huge::Refused => Advice::LinuxNoHugepage,
            Huge::Pool => return Ok(()),
        };
        // SAFETY: both pieces of advice change how memory is backed, never what it holds.
        let advised = unsafe { rustix::mm::madvise(self.start.as_ptr(), self.bytes, advice) };
        match advised {
            // A kernel without transparent huge pages has nothing to refuse.
            Err(rustix::io::Errno::INVAL) if huge == Huge::Refused => Ok(()),
            other => Ok(other?),
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the whole reservation is ours, and whoever borrowed from it is gone. Failing to
        // unmap leaves the memory mapped, which harms nobody.
        let _ = unsafe { rustix::mm::munmap(self.reserved.as_ptr(), self.reserved_bytes) };
    }
}

/// A writable mapping of a shared file, seen as atomic words.
pub struct SharedWords(Range);

impl SharedWords {
    /// Maps the first `bytes` of a file, at a multiple of `align`.
    pub fn map(fd: BorrowedFd<'_>, bytes: usize, align: usize, huge: Huge) -> io::Result<Self> {
        holds(fd, bytes)?;
        let range = Range::reserve(bytes, align)?;
        range.place(fd, 0, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        range.advise(huge)?;
        Ok(Self(range))
    }

    /// Maps the first `bytes` of a file again and again, `times` times in a row: as many
    /// addresses and page tables as a file of that many bytes would have.
    pub fn map_again(fd: BorrowedFd<'_>, bytes: usize, times: usize) -> io::Result<Self> {
        holds(fd, bytes)?;
        let total = bytes.checked_mul(times).ok_or(io::ErrorKind::OutOfMemory)?;
        let range = Range::reserve(total, ALIGN)?;
        for copy in 0..times {
            range.place(fd, copy * bytes, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        }
        range.advise(Huge::Refused)?;
        Ok(Self(range))
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped readable and writable, zero-filled by the kernel, aligned to a page, and
        // alive as long as `self`. The words are atomic, so other writers are no data race.
        unsafe { std::slice::from_raw_parts(self.0.start.cast().as_ptr(), self.0.bytes / 8) }
    }

    /// Where the mapping starts, to find it in `/proc/self/smaps`.
    pub fn address(&self) -> usize {
        self.0.start.addr().get()
    }
}

/// A small shared page: a head to wait on, and words.
pub struct ControlPage(Range);

impl ControlPage {
    /// Maps the whole of a file.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let bytes = size(fd)?;
        if bytes <= HEAD_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let range = Range::reserve(bytes, 4096)?;
        range.place(fd, 0, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self(range))
    }

    /// The head, fit for a futex.
    pub fn head(&self) -> &AtomicU32 {
        // SAFETY: the first bytes of a page-aligned mapping that lives as long as `self`; nobody
        // sees them as anything but this one atomic.
        unsafe { self.0.start.cast().as_ref() }
    }

    /// The words behind the head.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: as for `SharedWords::words`; the mapping is longer than the head.
        unsafe {
            let first = self.0.start.byte_add(HEAD_BYTES).cast();
            std::slice::from_raw_parts(first.as_ptr(), (self.0.bytes - HEAD_BYTES) / 8)
        }
    }
}

/// A mapping of a file that can never change again, seen as plain words.
pub struct SealedWords(Range);

impl SealedWords {
    /// Maps the first `bytes` of a file that carries the seals [`FROZEN`].
    pub fn map(fd: BorrowedFd<'_>, bytes: usize, align: usize, huge: Huge) -> io::Result<Self> {
        if !rustix::fs::fcntl_get_seals(fd)?.contains(FROZEN) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the table is not sealed"));
        }
        holds(fd, bytes)?;
        let range = Range::reserve(bytes, align)?;
        range.place(fd, 0, bytes, ProtFlags::READ)?;
        range.advise(huge)?;
        Ok(Self(range))
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        // SAFETY: mapped readable, page-aligned, alive as long as `self`, and any bits are a
        // `u64`. The seals were checked: no process can have it mapped writable or change it.
        unsafe { std::slice::from_raw_parts(self.0.start.cast().as_ptr(), self.0.bytes / 8) }
    }
}

/// Memory of this process alone.
pub struct PrivateWords(Range);

impl PrivateWords {
    /// Maps `bytes` of zeros at a multiple of [`ALIGN`].
    pub fn map(bytes: usize, huge: Huge) -> io::Result<Self> {
        let range = Range::reserve(bytes, ALIGN)?;
        // SAFETY: replaces part of our own reservation, to which nothing refers yet.
        unsafe {
            rustix::mm::mmap_anonymous(
                range.start.as_ptr(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED,
            )
        }?;
        range.advise(huge)?;
        Ok(Self(range))
    }

    /// The words, as atomics like those of a shared mapping, so that one loop reads both.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped readable and writable, page-aligned, alive as long as `self`.
        unsafe { std::slice::from_raw_parts(self.0.start.cast().as_ptr(), self.0.bytes / 8) }
    }

    /// Where the mapping starts, to find it in `/proc/self/smaps`.
    pub fn address(&self) -> usize {
        self.0.start.addr().get()
    }
}

/// The size of a file in bytes.
fn size(fd: impl AsFd) -> io::Result<usize> {
    let size = rustix::fs::fstat(fd)?.st_size;
    usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Refuses to map more than the file holds: touching beyond its end would be a bus error.
fn holds(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    if size(fd)? < bytes || bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is too short to map"));
    }
    Ok(())
}

/// The sum of all words, wrapping, in the widest vectors that this CPU has.
pub(crate) fn wide_sum(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: this CPU has AVX2, which is all that the function asks for.
        return unsafe { sum_avx2(words) };
    }
    plain_sum(words)
}

/// The same, compiled for vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(words: &[u64]) -> u64 {
    plain_sum(words)
}

#[expect(clippy::inline_always, reason = "else it is compiled for all CPUs, wherever it is called")]
#[inline(always)]
fn plain_sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn wide_sums_are_plain_sums(
            words in proptest::collection::vec(proptest::prelude::any::<u64>(), 0..300)
        ) {
            proptest::prop_assert_eq!(wide_sum(&words), plain_sum(&words));
        }
    }
}
