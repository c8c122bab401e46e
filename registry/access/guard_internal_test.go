package access

import (
	"context"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

// An operation whose row has no permission is refused to everybody.
func TestForgottenPermissionRefuses(t *testing.T) {
	t.Parallel()
	administrator := Anonymous()
	row := *rest.SetHold
	around := func(ctx context.Context, c rest.Call) error { return admit(ctx, administrator, c) }
	if _, err := rest.Ask(t.Context(), around, &row, rest.Hold{Environment: "prod", Model: "digits"}); err != nil {
		t.Errorf("with a permission: error %v", err)
	}
	row.Permission = ""
	if _, err := rest.Ask(t.Context(), around, &row, rest.Hold{Environment: "prod", Model: "digits"}); registry.CodeOf(err) != registry.CodeForbidden {
		t.Errorf("without a permission: error %v, want CodeForbidden", err)
	}
}
