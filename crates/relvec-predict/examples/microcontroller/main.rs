//! Predictions on a processor without an operating system, called from C: `main.c` beside this file reads model files and prints
//! what they predict. `cargo xtask test cross` compiles both for a Cortex-M4, and compares the numbers with those of this machine.
#![no_std]

extern crate alloc;
#[cfg(not(target_os = "none"))]
extern crate std;

use alloc::boxed::Box;
use alloc::vec::Vec;

use relvec_predict::ndarray::ArrayView2;
use relvec_predict::{Model, Moderation, Result};

/// Parts that a program without the standard library provides: memory, here that of the C library, and what a panic does.
#[cfg(target_os = "none")]
mod bare {
    use core::alloc::{GlobalAlloc, Layout};
    use core::ffi::c_void;
    use core::panic::PanicInfo;

    unsafe extern "C" {
        fn malloc(size: usize) -> *mut c_void;
        fn free(memory: *mut c_void);
        fn abort() -> !;
    }

    struct Memory;

    // SAFETY: `malloc` aligns memory to 8 bytes, more is refused; `free` gets what `malloc` gave.
    unsafe impl GlobalAlloc for Memory {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if layout.align() > 8 { core::ptr::null_mut() } else { unsafe { malloc(layout.size()) }.cast() }
        }

        unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
            unsafe { free(memory.cast()) }
        }
    }

    #[global_allocator]
    static MEMORY: Memory = Memory;

    #[panic_handler]
    fn panic(_: &PanicInfo) -> ! {
        unsafe { abort() }
    }
}

/// Reads the text of a model file; null if it is damaged.
///
/// # Safety
/// `text` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn model_read(text: *const u8, length: usize) -> Option<Box<Model>> {
    let text = unsafe { core::slice::from_raw_parts(text, length) };
    Some(Box::new(Model::from_json(core::str::from_utf8(text).ok()?).ok()?))
}

/// D, the number of features of a row.
#[unsafe(no_mangle)]
pub extern "C" fn model_features(model: &Model) -> usize {
    model.n_features
}

/// Predicts a row of D features: fills `out` with means and standard deviations, values of the decision functions, or
/// probabilities, and returns how many numbers that are; 0 if the row cannot be predicted or the numbers do not fit in.
///
/// # Safety
/// `row` has D numbers, `out` has room for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn model_predict(model: &Model, row: *const f64, out: *mut f64, room: usize) -> usize {
    let row = unsafe { core::slice::from_raw_parts(row, model.n_features) };
    let found = match ArrayView2::from_shape((1, row.len()), row).ok().and_then(|row| numbers(model, row).ok()) {
        Some(found) if found.len() <= room => found,
        _ => return 0,
    };
    unsafe { core::slice::from_raw_parts_mut(out, found.len()) }.copy_from_slice(&found);
    found.len()
}

/// Returns the memory of a model.
#[unsafe(no_mangle)]
pub extern "C" fn model_free(_: Option<Box<Model>>) {}

/// Predictions of a model for the rows `x`, [N, D].
fn numbers(model: &Model, x: ArrayView2<f64>) -> Result<Vec<f64>> {
    if model.margins.is_some() {
        return Ok(model.decision_function(x)?.into_raw_vec_and_offset().0);
    }
    if !model.classes.is_empty() {
        return Ok(model.predict_probability(x, Moderation::Posterior)?.into_raw_vec_and_offset().0);
    }
    let outputs = model.predict_outputs(x)?;
    Ok(outputs.iter().flat_map(|found| found.mean.iter().copied().chain(found.std())).collect())
}
