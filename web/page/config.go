package page

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Config configures the pages. All fields up to Runtimes are required.
type Config struct {
	// Registry returns what pages show. It checks the permissions of the context's principal itself.
	Registry api.Interface
	// Preview decides about promotions, with permissions checked in the same way.
	Preview api.Previewer
	// Authorize checks a permission of the context's principal for things that belong to no model. Errors:
	// CodeForbidden.
	Authorize func(ctx context.Context, permission storage.Permission, environment, model string) error
	// ReadNode reads a node document, or a node as Kubernetes prints it. Errors: CodeInvalid.
	ReadNode  func(name string, data []byte) (artifact.Node, error)
	NodeTypes storage.NodeTypes
	Runtimes  storage.Runtimes
	// Refused returns why a request has no principal, for a page that explains how to sign in. Nil: it is not
	// known.
	Refused func(ctx context.Context) error
	// Compare compares limits and interfaces of two releases that the reader may see. Nil: pages do not.
	Compare policy.CompareReleases
	// Content reads what releases consist of. Nil: pages do not show it.
	Content *Content
	// Nodes is what nodes report. Nil: pages do not show it.
	Nodes *NodeReports
	// Operations returns the state that administrators look after. It checks no permission. Nil: there is no such page.
	Operations func(ctx context.Context) (api.Operations, error)
	// Wait counts a request for a page and returns 0, or returns how long the caller must wait before the next one.
	// Nil: there is no limit.
	Wait func(r *http.Request) time.Duration
	// URL is where clients reach the service, as commands on pages name it. Empty: as the reader reached it.
	URL string
	// SignIn is how people sign in; nil where the service has no sessions.
	SignIn *SignIn
	Now    storage.Clock // nil means time.Now
	Logger *slog.Logger  // nil discards
}

// The maximum sizes of a query and of each of its values, in bytes.
const (
	MaxQuery  = 4 << 10
	MaxValue  = 512
	MaxReturn = 1 << 10 // of the value with the page to come back to
)

// Content reads what releases consist of. It checks no permission: pages ask it only about content that the reader may read. All
// fields are required.
type Content struct {
	// Files lists the files of an engine of a repository.
	Files func(ctx context.Context, repository string, engine registry.Digest) ([]artifact.File, error)
	// Inputs describes the inputs of a case. Those that have neither a picture nor a short text are left out.
	Inputs func(ctx context.Context, at CaseAt) ([]CaseInput, error)
	// Labels returns the label of each case of sources; nil if they have none, or not one integer each.
	Labels func(ctx context.Context, repository string, sources registry.Digest) ([]int64, error)
}

// CaseAt is a case of the sources of an engine.
type CaseAt struct {
	Sources string          // repository of the sources
	Digest  registry.Digest // of the sources
	Case    int             // its number, from 0
	Files   []artifact.File // of the engine; a vocabulary may be among them
}

// CaseInput is an input of a case as pages show it.
type CaseInput struct {
	Name string
	PNG  []byte // a picture, at most some kilobytes; nil if it is none
	Text string
}

// NodeReports lists the engines that nodes report.
type NodeReports struct {
	From storage.NodeReporter // checks the permissions of the context's principal
	Life time.Duration        // how long a report counts; 0: none are taken
}

// SignIn is how people sign in to a service. All fields but Ways are required.
type SignIn struct {
	Ways  []Way  // the issuers at which people can sign in; may be empty
	Token string // path of the form with the fields token and return
	With  string // prefix of the name of an issuer in the path that begins a sign-in
	Out   string // path of the form that ends the session, or with the field everywhere=1 all sessions
}

// Way is an issuer at which people can sign in.
type Way struct {
	Name   string
	Issuer string // its URL
}

// Answer is a page that is ready to be shown.
type Answer struct {
	Template string // its name, without the ending
	Title    string
	Nav      string // the entry of the navigation that is current
	API      string // address of the same facts as JSON
	Live     string // query of the event stream that tells of changes; empty if the page does not follow any
	Status   int    // 0: 200
	Location string // page to go to instead; the other fields are unused then
	Body     any
}
