package registry

// Reproducibility says what becomes of a step that is done twice, in two processes, from
// the same inputs. The zero Reproducibility is that nobody tried.
type Reproducibility string

// The classes of reproducibility, the best first.
const (
	ReproducibleBytes    Reproducibility = "bytes"    // the same bytes
	ReproducibleSemantic Reproducibility = "semantic" // other bytes that compute the same, within the limits of the release
	ReproducibleNone     Reproducibility = "none"     // something else each time
)
