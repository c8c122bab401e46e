package documents

import (
	"context"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// signedDocument is what the history and the catalog say of a restriction list or a trust bundle.
type signedDocument struct {
	environment string // empty for a trust bundle
	number      int64  // counter of a list, version of a bundle
	previous    registry.Digest
}

// documents are the signed documents of one kind. Events name them one after the other, and each
// names the one before, so that an older one cannot take the place of the newest.
type documents struct {
	kind  history.EventKind
	what  string
	table func(ctx context.Context, after string) ([]registry.Named[[]byte], error)
	get   func(ctx context.Context, d registry.Digest) ([]byte, error)
	read  func(bundle []byte) (signedDocument, error)
}

// Faults compares the restriction lists and trust bundles of the catalog with the events that name them,
// and checks that those in force count. It looks twice before it reports one that no event names, because the
// event may have been on its way.
func Faults(ctx context.Context, s *backend.Backend) ([]history.HistoryFault, error) {
	var faults []history.HistoryFault
	for _, docs := range []documents{restrictionDocuments(s), trustDocuments(s)} {
		found, err := compareDocuments(ctx, s, docs)
		if err == nil && len(found) > 0 {
			found, err = compareDocuments(ctx, s, docs)
		}
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	inForce, err := FaultsInForce(ctx, s)
	if err != nil {
		return nil, err
	}
	known := func(f history.HistoryFault) bool {
		return slices.ContainsFunc(faults, func(same history.HistoryFault) bool { return same.Environment == f.Environment })
	}
	return append(faults, slices.DeleteFunc(inForce, known)...), nil
}

// FaultsInForce returns why the list in force of an environment, or the newest trust bundle, does not count.
func FaultsInForce(ctx context.Context, s *backend.Backend) ([]history.HistoryFault, error) {
	var faults []history.HistoryFault
	for _, e := range s.Environments.List {
		_, _, err := readRestrictions(ctx, s, e.Name)
		if err != nil && !damaged(err) {
			return nil, err
		}
		if err != nil {
			faults = append(faults, history.HistoryFault{Environment: e.Name, Detail: err.Error()})
		}
	}
	if _, err := newestTrust(ctx, s); damaged(err) {
		faults = append(faults, history.HistoryFault{Detail: err.Error()})
	} else if err != nil {
		return nil, err
	}
	return faults, nil
}

// damaged reports whether an error says that a document is missing, was changed or does not count.
func damaged(err error) bool {
	return registry.HasCode(err, registry.CodeTrust) || registry.HasCode(err, registry.CodeDigest) || registry.HasCode(err, registry.CodeInternal)
}

func restrictionDocuments(s *backend.Backend) documents {
	return documents{
		kind: history.EventRestrict, what: "restriction list",
		table: func(ctx context.Context, after string) ([]registry.Named[[]byte], error) {
			if s.RestrictionBundles == nil {
				return nil, nil
			}
			page, err := s.RestrictionBundles.List(ctx, after, storage.MaxPage)
			return bytesOf(page, func(b storage.RestrictionBundle) []byte { return b.Bundle }), err
		},
		get: func(ctx context.Context, d registry.Digest) ([]byte, error) {
			if s.RestrictionBundles == nil {
				return nil, registry.Errorf(registry.CodeNotFound, "this process cannot read restriction lists")
			}
			stored, err := s.RestrictionBundles.Get(ctx, string(d))
			return stored.Bundle, err
		},
		read: func(bundle []byte) (signedDocument, error) {
			l, err := evidence.PeekRestrictionList(bundle)
			return signedDocument{environmentOf(s, l.ResourceURI), l.Counter, l.Previous}, err
		},
	}
}

func trustDocuments(s *backend.Backend) documents {
	return documents{
		kind: history.EventTrust, what: "trust bundle",
		table: func(ctx context.Context, after string) ([]registry.Named[[]byte], error) {
			if s.TrustBundles == nil {
				return nil, nil
			}
			page, err := s.TrustBundles.List(ctx, after, storage.MaxPage)
			return bytesOf(page, func(b storage.TrustBundleDocument) []byte { return b.Bundle }), err
		},
		get: func(ctx context.Context, d registry.Digest) ([]byte, error) {
			if s.TrustBundles == nil {
				return nil, registry.Errorf(registry.CodeNotFound, "this process cannot read trust bundles")
			}
			stored, err := s.TrustBundles.Get(ctx, string(d))
			return stored.Bundle, err
		},
		read: func(bundle []byte) (signedDocument, error) {
			b, err := trust.PeekTrustBundle(bundle)
			return signedDocument{"", b.Version, b.Previous}, err
		},
	}
}

// environmentOf returns the environment whose URI a list names, or "".
func environmentOf(s *backend.Backend, uri string) string {
	for _, e := range s.Environments.List {
		if s.Environments.EnvironmentURI(e.Name) == uri {
			return e.Name
		}
	}
	return ""
}

// bytesOf takes the signed bytes out of stored documents.
func bytesOf[T any](page []registry.Named[T], of func(T) []byte) []registry.Named[[]byte] {
	var all []registry.Named[[]byte]
	for _, d := range page {
		all = append(all, registry.Named[[]byte]{Name: d.Name, Document: of(d.Document)})
	}
	return all
}

// compareDocuments returns the documents of a kind that are not as events name them, and those that are newer
// than the newest event. Older ones without an event are left: two writers that raced left them.
func compareDocuments(ctx context.Context, s *backend.Backend, docs documents) ([]history.HistoryFault, error) {
	stored, err := docs.all(ctx)
	if err != nil && !damaged(err) {
		return nil, err
	}
	faults, newest, err := namedDocuments(ctx, s, docs)
	if err != nil {
		return nil, err
	}
	for _, d := range stored {
		read, err := docs.read(d.Document)
		if err != nil || docs.kind == history.EventRestrict && read.environment == "" {
			continue // no decision reads it
		}
		if known := newest[read.environment]; read.number > known {
			faults = append(faults, history.HistoryFault{Environment: read.environment, Manifests: []registry.Digest{registry.Digest(d.Name)},
				Detail: docs.of(read.environment, read.number) + " (" + d.Name +
					") exists, but the newest that an event of the history names is " + strconv.FormatInt(known, 10)})
		}
	}
	return faults, nil
}

// all reads the table. Errors: CodeInternal if a document in it is damaged.
func (docs documents) all(ctx context.Context) ([]registry.Named[[]byte], error) {
	var all []registry.Named[[]byte]
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := docs.table(ctx, after)
		if all = append(all, page...); err != nil || len(page) < storage.MaxPage {
			return all, err
		}
	}
}

// of names a document.
func (docs documents) of(environment string, number int64) string {
	text := docs.what + " " + strconv.FormatInt(number, 10)
	if environment != "" {
		text += " of " + environment
	}
	return text
}

// namedDocuments reads the documents that events name, and returns the number of the newest of each environment.
func namedDocuments(ctx context.Context, s *backend.Backend, docs documents) ([]history.HistoryFault, map[string]int64, error) {
	var faults []history.HistoryFault
	newest, last := make(map[string]int64), make(map[string]registry.Digest)
	for e, err := range s.Catalog.History(ctx, history.HistoryQuery{Kind: docs.kind}) {
		if err != nil {
			return nil, nil, err
		}
		why, err := docs.compare(ctx, e, newest[e.Environment], last[e.Environment])
		if err != nil {
			return nil, nil, err
		}
		newest[e.Environment]++
		if len(e.Evidence) == 1 {
			last[e.Environment] = e.Evidence[0]
		}
		if why != "" {
			faults = append(faults, history.HistoryFault{Environment: e.Environment, Manifests: e.Evidence,
				Detail: docs.of(e.Environment, newest[e.Environment]) + ", of event " + strconv.FormatInt(e.Seq, 10) + ": " + why})
		}
	}
	return faults, newest, nil
}

// compare returns what is wrong with the document that an event names, or "". before is the number of the one
// before it, which has the digest last.
func (docs documents) compare(ctx context.Context, e history.Event, before int64, last registry.Digest) (string, error) {
	if len(e.Evidence) != 1 {
		return "the event names " + strconv.Itoa(len(e.Evidence)) + ", want one", nil
	}
	bundle, err := docs.get(ctx, e.Evidence[0])
	switch {
	case registry.HasCode(err, registry.CodeNotFound):
		return string(e.Evidence[0]) + " is missing", nil
	case damaged(err):
		return err.Error(), nil
	case err != nil:
		return "", err
	}
	if found := digest.FromBytes(bundle); found != e.Evidence[0] {
		return "its bytes were changed: they have the digest " + string(found) + ", want " + string(e.Evidence[0]), nil
	}
	read, err := docs.read(bundle)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a document that cannot be read is a finding
	}
	if read.number != before+1 || read.previous != last || e.Version != strconv.FormatInt(read.number, 10) {
		return "it is number " + strconv.FormatInt(read.number, 10) + ", after " + strconv.Quote(string(read.previous)) + "; want " +
			strconv.FormatInt(before+1, 10) + ", after " + strconv.Quote(string(last)), nil
	}
	return "", nil
}
