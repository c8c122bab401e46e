package server

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func listWebhooks(s server, r *request) (*response, error) {
	after, limit, err := pageOf(r.Values)
	if err != nil {
		return nil, err
	}
	hooks, err := s.Webhooks.List(r.Context(), after, limit+1)
	if err != nil {
		return nil, err
	}
	hooks, next := cut(hooks, limit, func(h registry.Named[storage.Webhook]) string { return h.Name })
	var list []rest.Webhook
	for _, hook := range hooks {
		shown, err := webhookOf(s, r, hook.Name, hook.Document)
		if err != nil {
			return nil, err
		}
		list = append(list, shown)
	}
	return page(r, list, next)
}

func getWebhook(s server, r *request) (*response, error) {
	hook, err := s.Webhooks.Get(r.Context(), r.Name)
	if err != nil {
		return nil, err
	}
	shown, err := webhookOf(s, r, r.Name, hook)
	if err != nil {
		return nil, err
	}
	return ok(shown)
}

func addWebhook(s server, r *request) (*response, error) {
	now, err := catalogTime(s, r)
	if err != nil {
		return nil, err
	}
	hook, err := readWebhook(s, r, storage.Webhook{Secret: storage.NewWebhookSecret(), Created: now})
	if err != nil {
		return nil, err
	}
	if hook.After, err = s.feed.Newest(r.Context()); err != nil {
		return nil, err
	}
	id := strings.ToLower(rand.Text())
	if err := s.Webhooks.Put(r.Context(), id, hook); err != nil {
		return nil, err
	}
	shown, err := webhookOf(s, r, id, hook)
	if err != nil {
		return nil, err
	}
	shown.Secret = hook.SecretText()
	return answer(http.StatusCreated, shown)
}

func putWebhook(s server, r *request) (*response, error) {
	hook, err := s.Webhooks.Get(r.Context(), r.Name)
	if err != nil {
		return nil, err
	}
	if hook.Resumed, err = catalogTime(s, r); err != nil {
		return nil, err
	}
	if hook, err = readWebhook(s, r, hook); err != nil {
		return nil, err
	}
	if err := s.Webhooks.Put(r.Context(), r.Name, hook); err != nil {
		return nil, err
	}
	shown, err := webhookOf(s, r, r.Name, hook)
	if err != nil {
		return nil, err
	}
	return ok(shown)
}

func deleteWebhook(s server, r *request) (*response, error) {
	if err := s.Webhooks.Delete(r.Context(), r.Name); err != nil {
		return nil, err
	}
	if err := s.Deliveries.Delete(r.Context(), r.Name); err != nil && !registry.HasCode(err, registry.CodeNotFound) {
		return nil, err
	}
	return done()
}

// readWebhook sets the fields of a webhook from a request body.
func readWebhook(s server, r *request, hook storage.Webhook) (storage.Webhook, error) {
	var body rest.WebhookRequest
	if err := read(r, &body); err != nil {
		return hook, err
	}
	if err := registry.ValidateText("webhook: the URL", body.URL); err != nil {
		return hook, err
	}
	if err := s.CheckWebhookURL(body.URL); err != nil {
		return hook, err
	}
	if err := canHappen(s, r, body); err != nil {
		return hook, err
	}
	hook.URL, hook.Environment, hook.Model, hook.Kinds = body.URL, body.Environment, body.Model, body.Kinds
	return hook, nil
}

// canHappen refuses a webhook that would never receive anything.
func canHappen(s server, r *request, body rest.WebhookRequest) error {
	for _, kind := range body.Kinds {
		if !slices.Contains(history.WebhookKinds(), kind) {
			return registry.Errorf(registry.CodeInvalid, "kind %.100q: want one of %v", kind, history.WebhookKinds())
		}
	}
	if body.Environment != "" {
		environments, err := s.Registry.Environments(r.Context())
		if err != nil {
			return err
		}
		if _, err := environments.Find(body.Environment); err != nil {
			return registry.Errorf(registry.CodeInvalid, "webhook: %w", err)
		}
	}
	if body.Model == "" {
		return nil
	}
	return registry.ValidateModel(body.Model)
}

// webhookOf returns a webhook without its secret.
func webhookOf(s server, r *request, id string, hook storage.Webhook) (rest.Webhook, error) {
	state, err := s.Deliveries.Get(r.Context(), id)
	if registry.HasCode(err, registry.CodeNotFound) {
		state, err = storage.Delivery{Delivered: hook.After}, nil
	}
	return rest.Webhook{
		ID: id, WebhookRequest: rest.WebhookRequest{
			URL: hook.URL, Environment: hook.Environment, Model: hook.Model, Kinds: hook.Kinds,
		},
		Created: hook.Created, Delivered: state.Delivered, Attempts: state.Attempts, NextAttempt: state.NextAttempt,
		LastError: state.LastError, Suspended: !state.Active(hook),
	}, err
}

// catalogTime returns the time to the second, by the clock of the deliverer.
func catalogTime(s server, r *request) (time.Time, error) {
	now, err := s.Clock.CatalogTime(r.Context())
	return now.UTC().Truncate(time.Second), err
}
