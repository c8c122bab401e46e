// Package toolchain defines the port through which models are built into engines and engines
// are run: a [Driver] does one [Job] and leaves files.
//
// Drivers start processes, because a toolchain parses untrusted bytes and keeps state that the
// next step should not see. Drivers are in ort, which runs ONNX Runtime in a child process of this
// program, in script, which runs a small program in an environment that install created from a
// lock file, and in manifest, for any compiler with a command line. All of them speak one protocol, which package driverproc
// implements.
//
// Wrappers add what drivers share: [Cache] stores the results of steps, [Limit] makes
// steps wait until the machine has the cores, memory and GPUs that they need.
package toolchain
