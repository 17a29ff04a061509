"""Bytes of Feast's own code, for test/unit/adapters/redis/feast-layout.test.ts.

    <python with feast[redis]> test/unit/adapters/redis/feast_golden.py > test/unit/adapters/redis/feast-golden.json
"""
import json, sys
from feast.infra.online_stores.helpers import _mmh3, _redis_key
from feast.protos.feast.types.EntityKey_pb2 import EntityKey
from feast.protos.feast.types.Value_pb2 import *
from google.protobuf.timestamp_pb2 import Timestamp
import feast
h=lambda b:b.hex()
out={'feast':feast.__version__,'keys':[],'fields':[],'values':[],'timestamps':[]}
for k,id in [('item_id',7),('item_id',-1),('item_id',2**63-1),('user_id','ann'),('user_id','ä🦆'),('user_id','')]:
    v=Value(int64_val=id) if isinstance(id,int) else Value(string_val=id)
    out['keys'].append({'joinKey':k,'id':({'int64':str(id)} if isinstance(id,int) else {'string':id}),'project':'shop','bytes':h(_redis_key('shop',EntityKey(join_keys=[k],entity_values=[v])))})
for v,f in [('items','price'),('items','ctr'),('user_stats','taste'),('ä','🦆'),('v','f1'),('v','f12'),('v','f123')]:
    out['fields'].append({'view':v,'feature':f,'bytes':h(_mmh3(f'{v}:{f}'))})
for name,v,want in [
 ('float',Value(float_val=0.1),[0.10000000149011612]),('float 0',Value(float_val=0),[0]),('double',Value(double_val=0.1),[0.1]),
 ('int32',Value(int32_val=-5),[-5]),('int64',Value(int64_val=-2**62),[-2**62]),('bool',Value(bool_val=True),[1]),('bool false',Value(bool_val=False),[0]),
 ('float list',Value(float_list_val=FloatList(val=[0.5,-1.5,0])),[0.5,-1.5,0]),('double list',Value(double_list_val=DoubleList(val=[0.1,2])),[0.1,2]),
 ('int32 list',Value(int32_list_val=Int32List(val=[1,-2])),[1,-2]),('int64 list',Value(int64_list_val=Int64List(val=[1,-2,2**40])),[1,-2,2**40]),
 ('bool list',Value(bool_list_val=BoolList(val=[True,False])),[1,0]),('empty list',Value(float_list_val=FloatList()),[]),
 ('nothing',Value(),None),('null',Value(null_val=NULL),None),
 ('string',Value(string_val='7'),'no-number'),('bytes',Value(bytes_val=b'\1'),'no-number'),('string list',Value(string_list_val=StringList(val=['a'])),'no-number'),
 ('timestamp',Value(unix_timestamp_val=7),'no-number'),('float set',Value(float_set_val=FloatSet(val=[1.5])),'no-number'),
]: out['values'].append({'of':name,'bytes':h(v.SerializeToString()),'read':want})
for s,n in [(1_764_000_000,0),(1_764_000_000,250_000_000),(0,0),(-1,500_000_000)]:
    out['timestamps'].append({'bytes':h(Timestamp(seconds=s,nanos=n).SerializeToString()),'ms':s*1000+n/1e6})
json.dump(out,sys.stdout,indent=1,ensure_ascii=False)
