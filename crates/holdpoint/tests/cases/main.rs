//! The published list of cases, group by group; `docs/cases/` has a table for each.
#![allow(clippy::unwrap_used)] // A case is a test, and so are its helpers.

#[path = "../common/mod.rs"]
mod common;

mod case_a;
mod case_b;
mod case_c;
mod case_d;
mod case_e;
mod case_f;
mod case_g;
mod case_h;
mod case_i;
mod case_j;
mod case_k;
mod case_l;
mod case_m;
mod case_n;
mod case_o;
mod tables;
