package registry

import (
	"fmt"
	"time"
)

// Reproducibility says what becomes of a step that is done twice, in two processes, from
// the same inputs. The zero Reproducibility is that nobody tried.
type Reproducibility string

// The classes of reproducibility, the best first.
const (
	// ReproducibleBytes is the same files with the same bytes.
	ReproducibleBytes Reproducibility = "bytes"
	// ReproducibleSemantic is other bytes in files of the same names that compute the same:
	// on every case of the release, every output of the one is bit for bit that of the other.
	ReproducibleSemantic Reproducibility = "semantic"
	// ReproducibleNone is something else, or something that nothing here can run.
	ReproducibleNone Reproducibility = "none"
)

// rank orders classes, the best highest. What nobody tried ranks below all.
func (r Reproducibility) rank() int {
	return map[Reproducibility]int{ReproducibleBytes: 3, ReproducibleSemantic: 2, ReproducibleNone: 1}[r]
}

// AtLeast reports whether r is as good as want.
func (r Reproducibility) AtLeast(want Reproducibility) bool { return r.rank() >= want.rank() }

// ReproducibleField is the field of the metadata of SLSA provenance that holds the class
// of an engine: the worst of its steps. Vendors prefix their fields with their name
// (https://slsa.dev/spec/v1.0/provenance#extension-fields).
const ReproducibleField = "mlpromote_reproducible"

// provenanceMetadata is the part of the metadata of SLSA provenance that rules read.
type provenanceMetadata struct {
	FinishedOn   time.Time       `json:"finishedOn"`
	Reproducible Reproducibility `json:"mlpromote_reproducible"` // ReproducibleField
}

// provenanceMetadata reads a statement of provenance. Unreadable metadata is zero.
func (s Statement) provenanceMetadata() provenanceMetadata {
	var predicate struct {
		RunDetails struct {
			Metadata provenanceMetadata `json:"metadata"`
		} `json:"runDetails"`
	}
	if DecodeSigned(s.Predicate, &predicate) != nil {
		return provenanceMetadata{}
	}
	return predicate.RunDetails.Metadata
}

// Reproducible reads from a statement of provenance how the engine came out when its steps
// were repeated. It is empty if they were not.
func (s Statement) Reproducible() Reproducibility {
	class := s.provenanceMetadata().Reproducible
	if class.rank() == 0 {
		return ""
	}
	return class
}

// judgeReproducible decides whether builders found the engine to come out as wanted. Of
// several findings the worst counts.
func judgeReproducible(req *Requirement, want Reproducibility, provenance []Claim) {
	found := Reproducibility("")
	for _, c := range provenance {
		class := c.Statement.Reproducible()
		if class == "" {
			continue
		}
		req.cite(c)
		if found == "" || found.AtLeast(class) {
			found = class
		}
	}
	switch {
	case found == "":
		req.Detail = "nobody built it twice: run mlpromote build --check-reproducible"
	case found.AtLeast(want):
		req.Met, req.Detail = true, fmt.Sprintf("built twice with the class %s", found)
	default:
		req.Detail = fmt.Sprintf("built twice, it came out with the class %s, and %s is asked for: choose a toolchain or variant that keeps it", found, want)
	}
}
