package serving

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var sources embed.FS

// Sources returns the code of this package, which decides what servers are asked and what is read from their answers.
func Sources() fs.FS { return sources }
