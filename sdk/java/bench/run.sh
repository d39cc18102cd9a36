#!/bin/sh
# Compiles the library and measures it. In the folder of the pom.
set -eu
mvn --quiet --batch-mode compile dependency:build-classpath -Dmdep.outputFile=target/classpath -Dmdep.includeScope=runtime >&2
exec java -cp "target/classes:$(cat target/classpath)" bench/Main.java
