"""All targets, by name."""

from fuzzing import of_amqp, of_files, of_settings, of_spark, of_stores
from fuzzing.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (of_stores, of_amqp, of_spark, of_files, of_settings)
    for target in module.TARGETS
}
