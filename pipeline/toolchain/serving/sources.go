package serving

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var sources embed.FS

// Sources returns the code of this package, which decides about requests to servers and reads their answers.
func Sources() fs.FS { return sources }
