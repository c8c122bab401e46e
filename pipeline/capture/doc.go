// Package capture records cases from the requests that a service of the Open Inference Protocol answers.
// A [Recorder] is a reverse proxy: it forwards each request as it is, and reads a copy of it afterwards, in
// a goroutine of its own. A request is forwarded and counted as skipped if its copy cannot be read, or if
// there is no memory for it.
//
// Only REST is recorded. gRPC needs another port of the service, which clients keep using.
package capture

import (
	"net/url"

	"mlpromote.dev/mlpromote/validators"
)

// Bounds of what a recorder holds in memory, beside its sample.
const (
	maxBody   = 64 << 20  // of one request or answer, also unpacked
	maxCopies = 256 << 20 // of all copies that are not read yet
	maxQueue  = 256       // requests that wait to be read
	maxRows   = 1 << 16   // cases of one request
	maxSplit  = 1 << 30   // bytes of all of them, where an input without a batch counts for each
)

// Options configure the recording and its destination.
type Options struct {
	Upstream *url.URL // the service
	Model    string   // the model of the recorded requests; empty takes the first that the service answers for
	To       string   // folder of the cases
	Add      bool     // to the cases that are in the folder; else it has to be new or empty
	Count    int      // cases that are kept
	MaxBytes int64    // of the data of all that are kept
	Seed     uint64   // of the sample
	Share    float64  // of the requests that are read: above 0, and 1 for all
	Inputs   []string // which inputs are recorded; nil for all
	Outputs  bool     // record the answers of the service too
	// Interface is the inputs of the model. Without it, the service is asked for the model's shapes.
	Interface *validators.Interface
	// Note tells people something. It is called from several goroutines.
	Note func(format string, args ...any)
}

// Reasons for which a request, or a case of it, is not recorded.
const (
	skipModel      = "for another model"
	skipAnswer     = "answered with an error"
	skipUnanswered = "not answered by the service"
	skipBroken     = "broken off"
	skipLarge      = "too large"
	skipBusy       = "no room to keep a copy"
	skipUnreadable = "that could not be read"
	skipInputs     = "with other inputs"
)

// Skipped counts requests that were not recorded, by reason.
type Skipped struct {
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"` // the mistake in the first
}

// Recorded is the result of a recording.
type Recorded struct {
	Folder     string    `json:"folder"`
	Model      string    `json:"model,omitempty"`
	Cases      int       `json:"cases"`      // that were written
	Files      []string  `json:"files"`      // the shards
	Requests   int       `json:"requests"`   // for inferences, including other models
	Read       int       `json:"read"`       // cases in the requests that were read; Cases are a sample of them
	Duplicates int       `json:"duplicates"` // those with the inputs of one that was kept
	Skipped    []Skipped `json:"skipped"`
}
