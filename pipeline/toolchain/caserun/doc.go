// Package caserun reads cases, runs them on engines and writes their outputs, as toolchain.RunOptions
// describes. All drivers in Go share it.
//
// A driver loads its engines, implements [Engine] and calls, in this order, [Groups], [Open],
// [Shard.Check] for further engines, [CheckRounds] and [Run].
package caserun

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var sources embed.FS

// Sources returns the code of this package. It decides which outputs a driver computes, so a driver
// includes it in the digest of its own code.
func Sources() fs.FS { return sources }
