package web

import (
	"net/http"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

// operationsView is the page of what administrators look after.
type operationsView struct {
	Storage, Collection, Integrity, Queues []page.Fact
	Largest                                []page.Fact
	Damaged                                []damage
	DamagedCount                           int
	Moves                                  []pendingMove
	Replicas                               []replica
	Keys                                   []key
	Webhooks                               []hook
}

// damage is content that cannot be served.
type damage struct {
	Digest   page.Digest
	What     string // what is wrong with it
	Found    page.Moment
	Releases string // that need it
}

// pendingMove is a promotion or rollback that began and has not ended.
type pendingMove struct {
	What, Model, URL string
	Begun            page.Moment
}

// replica is a process that serves the catalog.
type replica struct {
	Name, Host, Version string
	State               page.State
	Configuration       page.State
	Started, Seen       page.Moment
}

// key is a key or identity of the trust list.
type key struct {
	Name       string
	ID         page.Digest
	State      page.State
	When       string // it counts
	Roles      string
	Signs      string
	Where      []string // environments
	Statements int
	Last       page.Moment
	URL        string // of what it signed; empty: it signed nothing, or nothing says so
}

// hook is a webhook.
type hook struct {
	URL, What string
	State     page.State
	Delivered string
	Fault     string
}

func operationsPage(config *page.Config, r *http.Request) (page.Answer, error) {
	ctx := r.Context()
	if config.Operations == nil {
		return page.Answer{}, registry.Errorf(registry.CodeNotFound, "there is no page at this address")
	}
	if err := config.Authorize(ctx, storage.PermissionAdminister, "", ""); err != nil {
		return page.Answer{}, err
	}
	o, err := config.Operations(ctx)
	if err != nil {
		return page.Answer{}, err
	}
	view := operationsView{
		Storage: storageFacts(config.Now, o), Collection: collectionFacts(config.Now, o), Integrity: integrityFacts(config.Now, o), Queues: queueFacts(o), DamagedCount: o.DamagedCount,
	}
	if o.Content != nil {
		for _, use := range o.Content.Largest {
			view.Largest = append(view.Largest, page.Fact{Name: registry.PlainText(use.Repository), Text: page.ByteSize(use.Bytes)})
		}
	}
	for _, d := range o.Damaged {
		view.Damaged = append(view.Damaged, damageOf(config.Now, d))
	}
	for _, m := range o.Moves {
		what := "promotion to "
		if m.From == m.Environment {
			what = "rollback of "
		}
		view.Moves = append(view.Moves, pendingMove{what + registry.PlainText(m.Environment), registry.PlainText(m.Model), page.ModelURL(m.Model), page.MomentOf(config.Now, m.Begun)})
	}
	for _, one := range o.Replicas {
		view.Replicas = append(view.Replicas, replicaOf(config.Now, one, o.At))
	}
	for _, k := range o.Keys {
		view.Keys = append(view.Keys, keyOf(config.Now, k))
	}
	for _, w := range o.Webhooks {
		view.Webhooks = append(view.Webhooks, hookOf(config.Now, w))
	}
	return page.Answer{Template: "operations", Title: "Operations", Nav: "Operations", Body: view, API: page.APIPath + "/operations"}, nil
}

func storageFacts(now storage.Clock, o api.Operations) []page.Fact {
	facts := []page.Fact{{Name: "Version", Text: registry.PlainText(o.Version)}}
	if o.Content == nil {
		return append(facts, page.Fact{Name: "Content", Text: "is being counted: look again in a moment"})
	}
	c := *o.Content
	return append(facts,
		page.Fact{Name: "Content", Text: page.ByteSize(c.Bytes) + " in a " + registry.PlainText(c.Storage)},
		page.Fact{Name: "Pieces", Text: registry.Count(c.Manifests, "manifest") + ", " + registry.Count(c.Blobs, "blob")},
		page.Fact{Name: "Repositories", Text: page.Number(int64(c.Repositories))},
		page.Fact{Name: "Counted", Text: page.MomentOf(now, c.At).Ago})
}

func collectionFacts(now storage.Clock, o api.Operations) []page.Fact {
	every := "never"
	for _, r := range o.Replicas {
		if r.CollectEvery > 0 && !r.Stopped {
			every = "every " + page.ShortDuration(r.CollectEvery)
		}
	}
	facts := []page.Fact{{Name: "Runs", Text: every}}
	if c := o.Collection; c == nil {
		facts = append(facts, page.Fact{Name: "Last", Text: "not yet"})
	} else {
		result := "succeeded"
		if c.Failed {
			result = "failed: the log of the service has the reason"
		}
		facts = append(facts,
			page.Fact{Name: "Last", Text: page.MomentOf(now, c.Ended).Ago + ", " + result},
			page.Fact{Name: "Deleted", Text: registry.Count(c.Manifests, "manifest") + ", " + registry.Count(c.Blobs, "blob") + ", " + page.ByteSize(c.Bytes)})
		for _, skipped := range c.Skipped {
			facts = append(facts, page.Fact{Name: "Left alone", Text: registry.PlainText(skipped)})
		}
	}
	if o.Content != nil {
		facts = append(facts, page.Fact{Name: "Marked", Text: registry.Count(o.Content.Marked, "record") + " that nothing needs"})
	}
	return facts
}

func integrityFacts(now storage.Clock, o api.Operations) []page.Fact {
	every := "never"
	for _, r := range o.Replicas {
		if r.ScrubEvery > 0 && !r.Stopped {
			every = page.ShortDuration(r.ScrubEvery) + " after the last time"
		}
	}
	facts := []page.Fact{{Name: "Reads all again", Text: every}}
	switch {
	case !o.Scrub.Started.IsZero():
		facts = append(facts, page.Fact{Name: "Now", Text: registry.Count(o.Scrub.Checked, "piece") + " read, " + page.ByteSize(o.Scrub.Read) + ", since " + page.MomentOf(now, o.Scrub.Started).Ago})
	case o.Scrub.Finished.IsZero():
		facts = append(facts, page.Fact{Name: "Last", Text: "not yet"})
	}
	if !o.Scrub.Finished.IsZero() {
		facts = append(facts, page.Fact{Name: "Last", Text: page.MomentOf(now, o.Scrub.Finished).Ago})
	}
	return append(facts, page.Fact{Name: "Damaged", Text: registry.Count(o.DamagedCount, "piece")})
}

func queueFacts(o api.Operations) []page.Fact {
	waiting := 0
	for _, w := range o.Webhooks {
		if w.Waiting > 0 {
			waiting++
		}
	}
	return []page.Fact{
		{Name: "Moves", Text: registry.Count(len(o.Moves), "promotion or rollback", "promotions or rollbacks")},
		{Name: "Uploads", Text: registry.Count(o.Uploads, "blob")},
		{Name: "Deliveries", Text: registry.Count(waiting, "webhook") + " behind"},
	}
}

func damageOf(now storage.Clock, d storage.Damage) damage {
	var names []string
	for _, r := range d.Releases {
		name := r.Environment + "/" + r.Model
		if len(r.Tags) > 0 {
			name += ":" + r.Tags[0]
		}
		names = append(names, name)
	}
	return damage{page.DigestOf(d.Digest), registry.PlainText(string(d.Kind) + ": " + d.Detail), page.MomentOf(now, d.Found), registry.PlainText(strings.Join(names, ", "))}
}

func replicaOf(now storage.Clock, r storage.Replica, at time.Time) replica {
	view := replica{
		Name: registry.PlainText(r.Name), Host: registry.PlainText(r.Host), Version: registry.PlainText(r.Version), State: page.StateOf(page.ClassGood, "serves"),
		Configuration: page.StateOf(page.ClassWait, registry.PlainText(string(r.Configuration))), Started: page.MomentOf(now, r.Started), Seen: page.MomentOf(now, r.Seen),
	}
	switch {
	case r.Stopped:
		view.State = page.StateOf(page.ClassPlain, "stopped")
	case r.Lost(at):
		view.State = page.StateOf(page.ClassBad, "lost")
	}
	switch r.Configuration {
	case history.ConfigurationAgreed:
		view.Configuration = page.StateOf(page.ClassGood, string(r.Configuration))
	case history.ConfigurationDiffers:
		view.Configuration = page.StateOf(page.ClassBad, string(r.Configuration))
	}
	return view
}

func keyOf(now storage.Clock, k api.KeyUse) key {
	var roles, signs []string
	for _, role := range k.Roles {
		roles = append(roles, string(role))
	}
	for _, predicate := range k.MaySign {
		signs = append(signs, releases.EvidenceName(predicate))
	}
	view := key{
		Name: registry.PlainText(k.Name), State: releases.KeyState(k.State), Roles: registry.PlainText(strings.Join(roles, ", ")), Signs: registry.PlainText(strings.Join(signs, ", ")),
		Where: page.Plain(k.Environments), When: registry.PlainText(k.Window.String()), Statements: k.Statements, Last: page.MomentOf(now, k.Last),
	}
	if k.State == evidence.KeyRetired {
		view.When = strings.TrimSpace("retired " + page.MomentOf(now, k.RetiredAt).Ago + " " + view.When)
	}
	if len(k.NodeTypes) > 0 {
		view.When = strings.TrimSpace(view.When + " on " + registry.PlainText(strings.Join(k.NodeTypes, ", ")))
	}
	if k.Signer != "" {
		view.ID = page.Digest{Short: k.Signer[:min(len(k.Signer), page.ShortDigest)], Full: k.Signer}
		if k.Statements > 0 {
			view.URL = page.WithQuery("/history", "signer", k.Signer)
		}
	}
	return view
}

func hookOf(now storage.Clock, w api.WebhookUse) hook {
	what := []string{"all events"}
	if len(w.Kinds) > 0 {
		what = nil
		for _, kind := range w.Kinds {
			what = append(what, string(kind))
		}
	}
	text := strings.Join(what, ", ")
	if w.Model != "" {
		text += " of " + w.Model
	}
	if w.Environment != "" {
		text += " in " + w.Environment
	}
	view := hook{
		URL: registry.PlainText(w.URL), What: registry.PlainText(text), Fault: registry.PlainText(w.LastError), State: page.StateOf(page.ClassGood, "delivered"),
		Delivered: "up to event " + page.Number(w.Delivered),
	}
	if w.Waiting > 0 {
		view.Delivered += ", " + registry.Count(w.Waiting, "event") + " after it"
	}
	switch {
	case w.Suspended:
		view.State = page.StateOf(page.ClassBad, "stopped")
	case w.Attempts > 0:
		view.State = page.StateOf(page.ClassWait, registry.Count(w.Attempts, "failed attempt"))
		view.Delivered += ", next attempt " + page.MomentOf(now, w.NextAttempt).Ago
	case w.Waiting > 0:
		view.State = page.StateOf(page.ClassWait, "behind")
	}
	return view
}
