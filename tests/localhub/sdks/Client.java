import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import com.azure.messaging.eventhubs.models.SendOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Sends events with keys, and prints what it reads: `java Client.java CONNECTION GROUP COUNT`. */
public class Client {
    public static void main(String[] arguments) {
        EventHubClientBuilder builder =
                new EventHubClientBuilder().connectionString(arguments[0]).consumerGroup(arguments[1]);
        int count = Integer.parseInt(arguments[2]);
        try (EventHubProducerClient producer = builder.buildProducerClient()) {
            for (int number = 0; number < count; number++) {
                producer.send(
                        List.of(new EventData("event " + number)),
                        new SendOptions().setPartitionKey("key " + number));
            }
        }
        List<String> ids = new ArrayList<>();
        try (EventHubConsumerClient consumer = builder.buildConsumerClient()) {
            consumer.getEventHubProperties().getPartitionIds().forEach(ids::add);
            for (String id : ids) {
                int stored =
                        (int) consumer.getPartitionProperties(id).getLastEnqueuedSequenceNumber() + 1;
                if (stored == 0) {
                    continue;
                }
                for (PartitionEvent each :
                        consumer.receiveFromPartition(
                                id, stored, EventPosition.earliest(), Duration.ofMinutes(1))) {
                    EventData event = each.getData();
                    System.out.println(
                            id + "/" + event.getPartitionKey() + "/" + event.getBodyAsString());
                }
            }
        }
        System.out.println("partitions " + String.join(",", ids));
        System.exit(0); // the client's threads would keep the process for a while
    }
}
