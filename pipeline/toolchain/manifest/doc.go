// Package manifest makes a driver of any compiler with a command line, described by a
// manifest: what to call, what it leaves, what its engines are tied to, and under which
// licence it is used.
//
// A manifest is for compilers that this project cannot install. It turns a model into
// files, and says nothing of how they run: an engine that no driver here can run is
// built, signed and stored, and no policy that asks for parity lets it pass before a
// machine that can run it has verified it.
//
// The command runs in a child of our own program, which speaks the driver protocol for
// it, with a clean environment, a scratch folder and the limits of every driver.
package manifest
