package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Payload is the body of a delivery.
type Payload struct {
	Type      history.EventKind `json:"type"`
	Timestamp time.Time         `json:"timestamp"` // of the event
	// Page is the address of the page of the event's release; empty if there is none.
	Page string        `json:"page,omitempty"`
	Data history.Event `json:"data"`
}

// DamagePayload is the body of a delivery about damaged content.
type DamagePayload struct {
	Type      history.EventKind `json:"type"`      // history.EventDamage
	Timestamp time.Time         `json:"timestamp"` // when the first was found
	Data      []storage.Damage  `json:"data"`
}

// message is one delivery before it is signed. It is the same for every attempt.
type message struct {
	id   string
	body []byte
}

func newMessage(hook, service string, e history.Event) (message, error) {
	p := Payload{Type: e.Kind, Timestamp: e.Time, Data: e}
	if service != "" && e.Model != "" && e.Release != "" {
		p.Page = api.ReleasePage(service, e.Model, e.Release, e.Environment)
	}
	body, err := json.Marshal(p)
	return message{id: hook + "." + strconv.FormatInt(e.Seq, 10), body: body}, err
}

func newDamageMessage(hook string, found []storage.Damage) (message, error) {
	first, last := found[0], found[len(found)-1]
	body, err := json.Marshal(DamagePayload{Type: history.EventDamage, Timestamp: first.Found, Data: found})
	return message{id: hook + ".damage." + strconv.FormatInt(last.Found.UnixMicro(), 10) + "." + last.Digest.Encoded()[:16], body: body}, err
}

// signature returns the value of the header webhook-signature. Source: Standard Webhooks,
// "Signature scheme", symmetric.
func (m message) signature(secret []byte, timestamp string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(m.id + "." + timestamp + "."))
	mac.Write(m.body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
