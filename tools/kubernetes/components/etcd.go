package main

import (
	"errors"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdCommand is etcd with one member. It does not wait for the disk, since nothing of a test outlives the machine.
func etcdCommand() *cobra.Command {
	var dir, client, peer string
	command := &cobra.Command{
		Use:  "etcd",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return etcd(dir, client, peer) },
	}
	command.Flags().StringVar(&dir, "data-dir", "", "folder of the database")
	command.Flags().StringVar(&client, "client", "", "address for clients, such as http://127.0.0.1:2379")
	command.Flags().StringVar(&peer, "peer", "", "address for other members, of which there are none")
	return command
}

func etcd(dir, client, peer string) error {
	clientURL, clientErr := url.Parse(client)
	peerURL, peerErr := url.Parse(peer)
	if err := errors.Join(clientErr, peerErr); err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.Name + "=" + peer
	config.LogLevel = "warn"
	config.UnsafeNoFsync = true
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	select {
	case err := <-server.Err():
		return err
	case <-stop:
		return nil
	}
}
