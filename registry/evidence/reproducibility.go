package evidence

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Reproducibility is the result of running a step twice, in two processes, on the same inputs.
// The zero Reproducibility means that this was not tried.
type Reproducibility string

// The classes of reproducibility, best first.
const (
	// ReproducibleBytes: both runs made the same files with the same bytes.
	ReproducibleBytes Reproducibility = "bytes"
	// ReproducibleSemantic: the bytes differ, but the files have the same names and compute the
	// same. On every case of the release, all outputs are equal bit for bit.
	ReproducibleSemantic Reproducibility = "semantic"
	// ReproducibleNone: the results differ, or cannot be run here to compare them.
	ReproducibleNone Reproducibility = "none"
)

// rank orders classes, best highest. The zero class ranks lowest.
func (r Reproducibility) rank() int {
	return map[Reproducibility]int{ReproducibleBytes: 3, ReproducibleSemantic: 2, ReproducibleNone: 1}[r]
}

// AtLeast reports whether r is as good as want.
func (r Reproducibility) AtLeast(want Reproducibility) bool { return r.rank() >= want.rank() }

// ReproducibleField is the metadata field of SLSA provenance that holds the class of an engine:
// the worst class of its steps. Vendor fields have the name of the vendor as prefix
// (https://slsa.dev/spec/v1.0/provenance#extension-fields).
const ReproducibleField = "mlpromote_reproducible"

// provenanceMetadata is the part of the metadata of SLSA provenance that rules read.
type provenanceMetadata struct {
	FinishedOn   time.Time       `json:"finishedOn"`
	Reproducible Reproducibility `json:"mlpromote_reproducible"` // ReproducibleField
}

// provenanceMetadata reads a statement of provenance. It returns the zero value if the metadata
// is unreadable.
func (s Statement) provenanceMetadata() provenanceMetadata {
	var predicate struct {
		RunDetails struct {
			Metadata provenanceMetadata `json:"metadata"`
		} `json:"runDetails"`
	}
	if registry.DecodeSigned(s.Predicate, &predicate) != nil {
		return provenanceMetadata{}
	}
	return predicate.RunDetails.Metadata
}

// Reproducible reads the class of an engine from a statement of provenance. It is empty if the
// steps were not repeated.
func (s Statement) Reproducible() Reproducibility {
	class := s.provenanceMetadata().Reproducible
	if class.rank() == 0 {
		return ""
	}
	return class
}
