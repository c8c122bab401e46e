package serving

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// dial returns the client of a protocol for a server.
func dial(c Config, address addresses) (client, error) {
	web := &web{base: strings.TrimSuffix(address.http, "/"), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxIdleConnsPerHost: 1024, DisableCompression: true,
		}}}
	switch c.Protocol {
	case ProtocolREST:
		r := &rest{config: c, web: web}
		r.ids.repeated.Store(c.RepeatsIDs)
		return r, nil
	case ProtocolGRPC:
		return dialGRPC(c, address.grpc)
	case ProtocolTFServing:
		return &mapped{config: c, web: web, mapping: tfServing(c)}, nil
	case ProtocolHTTP:
		return &mapped{config: c, web: web, mapping: *c.HTTP}, nil
	}
	return nil, fmt.Errorf("unknown protocol %q: expected one of %s", c.Protocol, strings.Join(Protocols(), ", "))
}

// addresses is where a server listens.
type addresses struct {
	http string // http://127.0.0.1:8000
	grpc string // 127.0.0.1:8001
}
