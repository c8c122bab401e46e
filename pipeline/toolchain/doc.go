// Package toolchain is the port behind which models are turned into engines and
// engines are run: a [Driver] does one [Job] and leaves files.
//
// Drivers start processes, because a toolchain parses bytes that it should not
// trust and holds state that the next step should not see. The packages below this
// one are the drivers: ort is ONNX Runtime in a child of our own program, script
// runs a small program in an environment that install has made from a lock file.
// All of them speak one protocol, which package child supervises.
//
// What drivers share is added by wrapping: [Cache] remembers what a step made,
// [Limit] bounds how many run at once.
package toolchain
