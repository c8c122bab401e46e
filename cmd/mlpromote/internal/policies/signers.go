package policies

import (
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
)

// checkedSigner is a trust entry with the identifier of its key; empty without a file.
type checkedSigner struct {
	trust.TrustEntry
	KeyID string `json:"keyId,omitempty"`
}

func shortKey(id string) string { return id[:min(len(id), 12)] }

// keyState is the state of a key, with its time and the window of the key.
func keyState(e trust.TrustEntry) string {
	if !e.Window.IsZero() {
		always := e
		always.Window = evidence.Window{}
		return keyState(always) + " " + e.Window.String()
	}
	switch e.State {
	case evidence.KeyRetired:
		return "retired " + e.RetiredAt.Format("2006-01-02T15:04:05Z")
	case evidence.KeyRevoked:
		return "revoked " + e.RevokedAt.Format("2006-01-02T15:04:05Z")
	}
	return string(evidence.KeyTrusted)
}

// timed reports whether the time of a statement decides whether it counts.
func timed(e trust.TrustEntry) bool {
	return e.EffectiveState() == evidence.KeyRetired || !e.Window.IsZero()
}

// signersOf are the trust entries with the identifiers of their keys.
func signersOf(s config.Snapshot) []checkedSigner {
	signers := []checkedSigner{}
	for _, e := range s.Environments.Trust {
		signers = append(signers, checkedSigner{e, s.KeyID(e)})
	}
	return signers
}

func signerTable(signers []checkedSigner) string {
	rows := [][]string{{"SIGNER", "KEY", "STATE", "ROLES", "RESOURCES", "NODE TYPES"}}
	for _, s := range signers {
		rows = append(rows, []string{s.String(), ui.Dash(shortKey(s.KeyID)), keyState(s.TrustEntry),
			nodeverbs.RoleNames(s.Roles), strings.Join(s.Resources, ", "), ui.Dash(strings.Join(s.NodeTypes, ", "))})
	}
	return ui.Table(rows)
}
