package container

import (
	"slices"
	"strings"
)

// needed are the environment variables with which podman and docker find their programs,
// service and images. Variables that may hold a secret are left out: nothing is pulled.
var needed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_API_VERSION",
	"CONTAINER_HOST", "CONTAINER_SSHKEY", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE", "CONTAINERS_STORAGE_CONF",
	"STORAGE_DRIVER", "STORAGE_OPTS",
}

// environment returns the part of our environment that podman and docker get. Containers get
// none of it.
func environment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(needed, name) && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "_CONTAINERS_")
	})
}
