// Package toolchain defines the port through which models are built into engines and engines
// are run: a [Driver] does one [Job] and leaves files.
//
// Drivers start processes, because a toolchain parses untrusted bytes and keeps state that the
// next step should not see. The packages below this one are drivers: ort runs ONNX Runtime in a
// child process of this program, script runs a small program in an environment that install
// created from a lock file. All of them speak one protocol, which package driverproc
// implements.
//
// Wrappers add what drivers share: [Cache] stores the results of steps, [Limit] bounds how many
// run at once.
package toolchain
