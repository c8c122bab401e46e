// Package manifest provides a driver for any compiler with a command line. A manifest describes
// the compiler: how to call it, which files it leaves, which fields of a target its engines
// depend on, and its licence.
//
// A manifest is for compilers that this project cannot install. It says how to compile a model,
// but not how to run it. An engine that no driver on this machine can run is built, signed and
// stored. A policy that requires parity refuses it until a machine that can run it has verified
// it.
//
// The command runs in a child process of this program. The child speaks the driver protocol and
// has a clean environment, a scratch folder and the limits of every driver.
package manifest
