package server

import (
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
)

// historyQuery reads the parameters that streams and pages of the history share.
func historyQuery(r *request) (history.HistoryQuery, error) {
	q := history.HistoryQuery{
		Environment: r.Values.Get("environment"),
		Model:       r.Values.Get("model"),
		Kind:        history.EventKind(r.Values.Get("kind")),
	}
	if q.Kind == "" {
		return q, nil
	}
	return q, validKind(q.Kind)
}

// validKind refuses an unknown kind, for which no event would ever match.
func validKind(kind history.EventKind) error {
	if !slices.Contains(history.EventKinds(), kind) {
		return registry.Errorf(registry.CodeInvalid, "kind %.100q: want one of %v", kind, history.EventKinds())
	}
	return nil
}

// maxName is the maximum size in bytes of the name of a key or caller in a query.
const maxName = 1 << 10

func listHistory(s server, r *request) (*response, error) {
	if order := r.Values.Get("order"); order != "" && order != "asc" && order != "desc" {
		return nil, registry.Errorf(registry.CodeInvalid, "order %q: want asc or desc", order)
	}
	q, err := historyQuery(r)
	if err != nil {
		return nil, err
	}
	q.Descending = r.Values.Get("order") == "desc"
	if q.Subject = registry.Digest(r.Values.Get("subject")); q.Subject != "" {
		if err := q.Subject.Validate(); err != nil {
			return nil, registry.Errorf(registry.CodeInvalid, "subject %.100q: want a digest", q.Subject)
		}
	}
	q.Signer, q.Principal = r.Values.Get("signer"), r.Values.Get("principal")
	if len(q.Signer) > maxName || len(q.Principal) > maxName {
		return nil, registry.Errorf(registry.CodeInvalid, "signer and principal: want the identifier of a key and the name of a caller, at most %d bytes each", maxName)
	}
	if q.After, err = sequence("after", r.Values.Get("after")); err != nil {
		return nil, err
	}
	if q.Before, err = sequence("before", r.Values.Get("before")); err != nil {
		return nil, err
	}
	return eventPage(s, r, q)
}

// listPromotions lists the promotions of a model, newest first.
func listPromotions(s server, r *request) (*response, error) {
	return eventPage(s, r, history.HistoryQuery{
		Environment: r.Values.Get("environment"), Model: r.Name, Kind: history.EventPromote, Descending: true,
	})
}

// getPromotion returns one promotion by the number of its event.
func getPromotion(s server, r *request) (*response, error) {
	seq, err := sequence("promotion", r.Name)
	if err != nil || seq == 0 {
		return nil, noResource(r.Request)
	}
	events, err := s.Registry.History(r.Context(),
		history.HistoryQuery{Kind: history.EventPromote, After: seq - 1, Before: seq + 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, registry.Errorf(registry.CodeNotFound, "no promotion %d", seq)
	}
	return ok(events[0])
}

// eventPage returns a page of the events that q selects. The cursor is the number of the last
// event.
func eventPage(s server, r *request, q history.HistoryQuery) (*response, error) {
	cursor, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	from, err := sequence("cursor", cursor)
	switch {
	case err != nil:
		return nil, err
	case from > 0 && q.Descending:
		q.Before = from
	case from > 0:
		q.After = from
	}
	q.Limit = limit + 1
	events, err := s.Registry.History(r.Context(), q)
	if err != nil {
		return nil, err
	}
	events, next := cut(events, limit, func(e history.Event) string { return strconv.FormatInt(e.Seq, 10) })
	return page(r, events, next)
}

// sequence reads the number of an event; an empty text is 0. Errors: CodeInvalid.
func sequence(what, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n == 1<<63-1 {
		return 0, registry.Errorf(registry.CodeInvalid, "%s %.40q: want the sequence number of an event", what, text)
	}
	return n, nil
}

// listHistoryFaults checks the whole chain, and what the history should explain. A changed row is a
// result, not an error.
func listHistoryFaults(s server, r *request) (*response, error) {
	var result rest.Verification
	var before history.Event
	for e, err := range s.History(r.Context(), history.HistoryQuery{}) {
		if err == nil {
			err = e.VerifyChain(before)
		}
		if registry.HasCode(err, registry.CodeTrust) {
			result.Fault = err.Error()
			return ok(result)
		}
		if err != nil {
			return nil, err
		}
		result.Events, result.Last, before = e.Seq, e.Hash, e
	}
	var err error
	result.Faults, err = s.Registry.HistoryFaults(r.Context())
	if err != nil {
		return nil, err
	}
	result.Intact = len(result.Faults) == 0
	return ok(result)
}
