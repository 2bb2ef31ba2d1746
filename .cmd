b/foldline show $CASE/run1410.txt; b/foldline advise $CASE/run1410.txt $CASE/run1200.txt --bound 20%
