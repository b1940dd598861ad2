// Sends events with keys, and prints what it reads: `client CONNECTION GROUP COUNT`.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	connection, group := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	producer, err := azeventhubs.NewProducerClientFromConnectionString(connection, "", nil)
	check(err)
	for number := 0; number < count; number++ {
		key := fmt.Sprintf("key %d", number)
		batch, err := producer.NewEventDataBatch(ctx, &azeventhubs.EventDataBatchOptions{PartitionKey: &key})
		check(err)
		body := []byte(fmt.Sprintf("event %d", number))
		check(batch.AddEventData(&azeventhubs.EventData{Body: body}, nil))
		check(producer.SendEventDataBatch(ctx, batch, nil))
	}
	check(producer.Close(ctx))

	consumer, err := azeventhubs.NewConsumerClientFromConnectionString(connection, "", group, nil)
	check(err)
	hub, err := consumer.GetEventHubProperties(ctx, nil)
	check(err)
	for _, id := range hub.PartitionIDs {
		properties, err := consumer.GetPartitionProperties(ctx, id, nil)
		check(err)
		if properties.IsEmpty {
			continue
		}
		earliest := true
		partition, err := consumer.NewPartitionClient(id, &azeventhubs.PartitionClientOptions{
			StartPosition: azeventhubs.StartPosition{Earliest: &earliest},
		})
		check(err)
		stored := int(properties.LastEnqueuedSequenceNumber) + 1
		for stored > 0 {
			events, err := partition.ReceiveEvents(ctx, stored, nil)
			check(err)
			for _, event := range events {
				fmt.Printf("%s/%s/%s\n", id, *event.PartitionKey, event.Body)
			}
			stored -= len(events)
		}
		check(partition.Close(ctx))
	}
	check(consumer.Close(ctx))
	fmt.Printf("partitions %s\n", strings.Join(hub.PartitionIDs, ","))
}
