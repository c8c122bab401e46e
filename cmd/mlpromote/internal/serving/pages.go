package serving

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/web"
)

// webPages are the pages for people. What they show of a promotion is decided by the rules that were agreed on, as
// a dry run is.
func (sv *Service) webPages(i *wiring.Instance, previewer registry.Previewer, agreed config.Agreement) (http.Handler, error) {
	decides := agreedPreview{previewer, func(ctx context.Context) error { return agreed.Check(ctx, "environments") }}
	return web.New(web.Config{
		Registry: sv.telemetry.Registry(access.Guard(i)), Preview: access.Preview(decides, i.Environments),
		Authorize: access.AllowRoute, ReadNode: readNode, NodeTypes: i.NodeTypes, Runtimes: sv.Here.Runtimes(), Refused: access.RefusalOf, Now: clock.Now, Logger: sv.logger,
	})
}

// agreedPreview decides nothing by rules that were not agreed on.
type agreedPreview struct {
	registry.Previewer
	check func(ctx context.Context) error
}

func (p agreedPreview) Preview(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	if err := p.check(ctx); err != nil {
		return registry.Promotion{}, err
	}
	return p.Previewer.Preview(ctx, r)
}

// readNode reads a node document, or the labels of a Kubernetes node.
func readNode(name string, data []byte) (registry.Node, error) {
	if labels, err := node.ParseLabels(name, data); err == nil {
		return node.FromLabels(labels)
	}
	return node.Parse(name, data)
}
