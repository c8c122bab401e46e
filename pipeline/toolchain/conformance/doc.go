// Package conformance checks that a driver keeps the driver protocol (docs/reference/driver.md): one row for each promise. Tests
// of our own drivers and `mlpromote toolchain check` run the same rows.
package conformance
