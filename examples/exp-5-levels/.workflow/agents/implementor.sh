echo "part of $SLUICE_STEP" > part.txt
